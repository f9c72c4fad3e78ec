//! Kinds of action links by words.

use crate::LinkKind;
use crate::words::{Class, Hit};

/// What words say of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Kind(LinkKind),
    /// Nothing by itself: `click here`.
    Generic,
    /// It completes nothing.
    Other,
    /// The words have no meaning here.
    Unknown,
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

/// The order in which kinds win where words of several are in one text and the subject names none of them.
const ORDER: &[LinkKind] = &[
    LinkKind::ConfirmUnsubscribe,
    LinkKind::SecureAccount,
    LinkKind::ResetPassword,
    LinkKind::Unlock,
    LinkKind::AcceptInvitation,
    LinkKind::Confirm,
    LinkKind::SignIn,
];

/// What the text of a link means: the first of its words decides whether it is an action, the strongest kind which.
pub(super) fn meaning(hits: &[Hit], subject: &[LinkKind]) -> Meaning {
    let first = hits.iter().find(|hit| {
        kind_of(hit.class).is_some() || matches!(hit.class, Class::LinkOther | Class::LinkDecline)
    });
    match first.map(|hit| kind_of(hit.class)) {
        None if hits.iter().any(|hit| hit.class == Class::LinkGeneric) => Meaning::Generic,
        None => Meaning::Unknown,
        Some(None) => Meaning::Other,
        Some(Some(_)) => {
            let has = |kind: &LinkKind| hits.iter().any(|hit| kind_of(hit.class) == Some(*kind));
            let mut kinds = ORDER.iter().copied().filter(has);
            let first = kinds.next();
            let named = first.into_iter().chain(kinds).find(|kind| subject.contains(kind));
            named.or(first).map_or(Meaning::Unknown, Meaning::Kind)
        }
    }
}
