//! Whether a link completes what a mail is about, and how.

use std::ops::Range;

use super::address::Address;
use super::kind::{Say, hits_in, kind_of, say, say_of};
use crate::bounds::LINK_TEXT_CHARS;
use crate::text::chars::normalized;
use crate::text::{Part, ShownLink};
use crate::words::{Class, Hit, find_words};
use crate::{ActionLink, LinkKind, Source};

/// What a mail is about, as far as links are concerned.
#[derive(Debug, Clone, Default)]
pub(super) struct Purpose {
    /// Kinds that the subject names.
    subject: Vec<LinkKind>,
    /// Whether the mail reports something that its reader may not have done.
    is_alert: bool,
    /// Whether the mail asks to confirm that a subscription ends.
    confirms_end: bool,
}

/// Text before a link that may say what it does, in octets.
const BEFORE: usize = 240;
/// Text after a link in its sentence.
const AFTER: usize = 100;

impl Purpose {
    pub(super) fn of(parts: &[Part]) -> Self {
        let mut purpose = Self::default();
        let subject = parts.iter().find(|part| part.source == Source::Subject);
        if let Some(subject) = subject {
            purpose.subject = subject.hits.iter().filter_map(|hit| kind_of(hit.class)).collect();
            purpose.is_alert = subject.hits.iter().any(|hit| hit.class == Class::Alert);
            let names_end = subject.hits.iter().any(|hit| hit.class == Class::LinkUnsubscribe);
            purpose.confirms_end = names_end;
        }
        purpose
    }

    fn names(&self, kind: LinkKind) -> bool {
        self.subject.contains(&kind)
    }
}

/// Judges a link; nothing if it cannot be returned or completes nothing.
pub(super) fn judge(
    link: &ShownLink,
    part: &Part,
    purpose: &Purpose,
    from_domain: Option<&str>,
) -> Option<ActionLink> {
    if part.shown.is_quoted(link.range.start) {
        return None;
    }
    let address = Address::parse(&link.address, part.shown.base.as_deref())?;
    let shown = part.shown.text.get(link.range.clone()).unwrap_or_default();
    let is_bare = shown.contains("://") || shown.trim().is_empty();
    let own: Vec<Hit> = if shown.trim().is_empty() {
        find_words(&normalized(&link.alt))
    } else if is_bare {
        Vec::new()
    } else {
        hits_in(part, link.range.clone()).to_vec()
    };
    let _ = (say_of, AFTER, is_bare);
    let (mut kind, score, reason) = match say(&own) {
        Some(Say::Other) => return None,
        Some(Say::Kind(kind)) => (kind, 0.8, "The text of the link says so."),
        None => of_surroundings(link, part, purpose)?,
    };
    if kind == LinkKind::ResetPassword && purpose.is_alert {
        kind = LinkKind::SecureAccount;
    }
    if kind == LinkKind::ConfirmUnsubscribe && !purpose.confirms_end {
        return None;
    }
    if kind != LinkKind::SecureAccount && !address.has_token() {
        return None;
    }
    let confidence = score
        + if purpose.names(kind) { 0.1 } else { 0.0 }
        + if address.matches(from_domain) { 0.05 } else { 0.0 };
    let text = if shown.trim().is_empty() { link.alt.trim() } else { shown };
    Some(ActionLink {
        kind,
        text: text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(LINK_TEXT_CHARS).collect(),
        host_matches_from: address.matches(from_domain),
        host: address.host,
        url: address.text,
        confidence,
        source: part.source,
        reason,
    })
}

/// What the sentence before a link says, else the subject.
fn of_surroundings(
    link: &ShownLink,
    part: &Part,
    purpose: &Purpose,
) -> Option<(LinkKind, f32, &'static str)> {
    let start = link.range.start;
    let from = part.shown.text.ceil_char_boundary(start.saturating_sub(BEFORE));
    let before: Range<usize> = from..start;
    let hits = hits_in(part, before);
    let nearest = hits.iter().rev().find_map(|hit| match hit.class {
        Class::LinkOther | Class::LinkDecline => Some(Say::Other),
        class => kind_of(class).map(Say::Kind),
    });
    match nearest {
        Some(Say::Kind(kind)) => Some((kind, 0.7, "The words before it say so.")),
        Some(Say::Other) => None,
        None => purpose.subject.first().map(|kind| (*kind, 0.55, "The subject says so.")),
    }
}
