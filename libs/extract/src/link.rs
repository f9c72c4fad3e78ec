//! Action links: which links complete what a mail is about.

mod address;
mod judge;

use crate::bounds::ACTION_LINKS_MAX;
use crate::part::Part;
use crate::words::{Class, Hit};
use crate::{ActionLink, LinkKind, Source};

/// From this score on a link is an action link.
const SCORE_MIN: f32 = 0.6;

/// Finds the action links of a message, best first.
pub(crate) fn find(parts: &[Part], from_domain: Option<&str>) -> Vec<ActionLink> {
    let purpose = Purpose::of(parts);
    let mut found: Vec<ActionLink> = Vec::new();
    for part in parts.iter().filter(|part| part.source != Source::Subject) {
        let base = part.shown.base.as_deref().and_then(address::base_of);
        for index in 0..part.shown.links.len() {
            let Some(link) = judge::judge(part, index, &purpose, base.as_ref(), from_domain) else {
                continue;
            };
            if link.confidence < SCORE_MIN {
                continue;
            }
            match found.iter_mut().find(|known| known.url == link.url) {
                Some(known) if link.confidence > known.confidence => *known = link,
                Some(_) => {}
                None => found.push(link),
            }
            if found.len() > 64 {
                break;
            }
        }
    }
    found.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    found.truncate(ACTION_LINKS_MAX);
    for link in &mut found {
        link.confidence = (link.confidence.clamp(0.5, 0.99) * 100.0).round() / 100.0;
    }
    found
}

/// Evidence of the whole message.
#[derive(Debug, Clone, Default)]
struct Purpose {
    /// Kinds that the subject names.
    subject: Vec<LinkKind>,
    /// Whether the subject reports something that the reader may not have done.
    subject_is_alert: bool,
    /// Whether the mail does.
    is_alert: bool,
    /// Whether the subject is about the end of a subscription.
    ends_subscription: bool,
    /// Whether it says what is said of links that are used once: `expires in`.
    has_hint: bool,
    /// Words for accepting and inviting.
    invitations: usize,
    /// Words for signing in.
    sign_ins: usize,
}

impl Purpose {
    fn of(parts: &[Part]) -> Self {
        let mut purpose = Self::default();
        for part in parts {
            let is_subject = part.source == Source::Subject;
            for hit in part.hits.iter().filter(|hit| !part.shown.is_quoted(hit.start)) {
                match hit.class {
                    Class::Alert => {
                        purpose.is_alert = true;
                        purpose.subject_is_alert |= is_subject;
                    }
                    Class::Hint | Class::Secret => purpose.has_hint = true,
                    Class::LinkAccept => purpose.invitations += 1,
                    Class::LinkSignIn => purpose.sign_ins += 1,
                    Class::LinkUnsubscribe => purpose.ends_subscription |= is_subject,
                    _ => {}
                }
                if is_subject {
                    purpose.subject.extend(kind_of(hit.class));
                }
            }
        }
        purpose
    }

    fn subject_names(&self, kind: LinkKind) -> bool {
        self.subject.contains(&kind)
    }

    /// The kind that the subject stands for, if it names one.
    fn of_subject(&self) -> Option<LinkKind> {
        if self.subject_is_alert { None } else { self.subject.first().copied() }
    }
}

/// What words say of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Kind(LinkKind),
    /// Nothing by itself: `click here`.
    Generic,
    /// It completes nothing.
    Other,
    /// The words have no meaning here.
    Unknown,
}

/// The kind that a class of words stands for.
fn kind_of(class: Class) -> Option<LinkKind> {
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
fn meaning(hits: &[Hit], subject: &[LinkKind]) -> Meaning {
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
