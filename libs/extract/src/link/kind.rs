//! Kinds of action links by words.

use std::ops::Range;

use crate::LinkKind;
use crate::text::Part;
use crate::words::{Class, Hit, find_words};

/// What words say of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Say {
    Kind(LinkKind),
    /// It completes nothing.
    Other,
}

/// The kind that a class of words stands for.
pub(super) fn kind_of(class: Class) -> Option<LinkKind> {
    Some(match class {
        Class::LinkConfirm => LinkKind::Confirm,
        Class::LinkReset => LinkKind::ResetPassword,
        Class::LinkSignIn => LinkKind::SignIn,
        Class::LinkAccept => LinkKind::AcceptInvitation,
        Class::LinkUnlock => LinkKind::Unlock,
        Class::LinkUnsubscribe => LinkKind::ConfirmUnsubscribe,
        Class::LinkSecure => LinkKind::SecureAccount,
        _ => return None,
    })
}

/// The order in which kinds win where words of several are in one text.
const ORDER: &[LinkKind] = &[
    LinkKind::ConfirmUnsubscribe,
    LinkKind::SecureAccount,
    LinkKind::ResetPassword,
    LinkKind::Unlock,
    LinkKind::AcceptInvitation,
    LinkKind::Confirm,
    LinkKind::SignIn,
];

/// What the words of a text say, by the strongest kind.
pub(super) fn say(hits: &[Hit]) -> Option<Say> {
    if hits.iter().any(|hit| matches!(hit.class, Class::LinkOther | Class::LinkDecline)) {
        return Some(Say::Other);
    }
    let has = |kind: LinkKind| hits.iter().any(|hit| kind_of(hit.class) == Some(kind));
    ORDER.iter().find(|kind| has(**kind)).map(|kind| Say::Kind(*kind))
}

/// The words of a range.
pub(super) fn hits_in(part: &Part, range: Range<usize>) -> &[Hit] {
    let from = part.hits.partition_point(|hit| hit.start < range.start);
    let to = from + part.hits[from..].partition_point(|hit| hit.start < range.end);
    &part.hits[from..to]
}

/// What a text says that is not part of the shown text, such as that of an image.
pub(super) fn say_of(text: &str) -> Option<Say> {
    say(&find_words(text))
}
