//! What a mail is about, as far as links are concerned.

use super::kind::kind_of;
use crate::part::Part;
use crate::words::Class;
use crate::{LinkKind, Source};

/// Evidence of the whole message.
#[derive(Debug, Clone, Default)]
pub(super) struct Purpose {
    /// Kinds that the subject names.
    pub(super) subject: Vec<LinkKind>,
    /// Whether the subject reports something that the reader may not have done.
    pub(super) subject_is_alert: bool,
    /// Whether the mail does.
    pub(super) is_alert: bool,
    /// Whether the subject is about the end of a subscription.
    pub(super) ends_subscription: bool,
    /// Whether it says what is said of links that are used once: `expires in`.
    pub(super) has_hint: bool,
    /// Words for accepting and inviting.
    pub(super) invitations: usize,
    /// Words for signing in.
    pub(super) sign_ins: usize,
}

impl Purpose {
    pub(super) fn of(parts: &[Part]) -> Self {
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

    pub(super) fn subject_names(&self, kind: LinkKind) -> bool {
        self.subject.contains(&kind)
    }

    /// The kind that the subject stands for, if it names one.
    pub(super) fn of_subject(&self) -> Option<LinkKind> {
        if self.subject_is_alert { None } else { self.subject.first().copied() }
    }
}
