//! Whether a link completes what a mail is about, and how.

use std::ops::Range;

use url::Url;

use super::address::Address;
use super::{Meaning, Purpose, kind_of, meaning};
use crate::bounds::LINK_TEXT_CHARS;
use crate::part::Part;
use crate::text::chars::normalized;
use crate::text::{ShownLink, line_at, sentence_at};
use crate::words::{Class, Hit, find_words};
use crate::{ActionLink, LinkKind};

/// Text before a link that may say what it does, in octets.
const BEFORE: usize = 260;
/// Text after a link that may, within its sentence.
const AFTER: usize = 60;

/// A link and what stands around it.
struct LinkOccurrence<'a> {
    link: &'a ShownLink,
    part: &'a Part,
    purpose: &'a Purpose,
    address: &'a Address,
    /// Where the link before it ends; words before that are about that one.
    previous_end: usize,
}

/// What a link is, how sure that is, and why.
type Finding = (LinkKind, f32, &'static str);

/// Judges the link at `index` of a part, whose links are relative to `base`; nothing if it cannot be returned or
/// completes nothing.
pub(super) fn judge(
    part: &Part,
    index: usize,
    purpose: &Purpose,
    base: Option<&Url>,
    from_domain: Option<&str>,
) -> Option<ActionLink> {
    let link = part.shown.links.get(index)?;
    if part.shown.is_quoted(link.range.start) {
        return None;
    }
    let address = Address::parse(&link.address, base)?;
    let previous_end = index.checked_sub(1).map_or(0, |before| part.shown.links[before].range.end);
    let occurrence = LinkOccurrence { link, part, purpose, address: &address, previous_end };
    let (kind, score, reason) = occurrence.finding()?;
    let matches = address.matches(from_domain);
    let named = if purpose.subject_names(kind) { 0.1 } else { 0.0 };
    let own = if matches { 0.05 } else { 0.0 };
    let token = if address.has_random_token() { 0.04 } else { 0.0 };
    Some(ActionLink {
        kind,
        text: occurrence.text(),
        host_matches_from: matches,
        confidence: score + named + own + token,
        source: part.source,
        reason,
        host: address.host,
        url: address.text,
    })
}

impl LinkOccurrence<'_> {
    fn shown(&self) -> &str {
        self.part.shown.text.get(self.link.range.clone()).unwrap_or_default()
    }

    /// The text of the link, or what stands for its image.
    fn text(&self) -> String {
        let shown = self.shown();
        let text = if shown.trim().is_empty() { &self.link.alt } else { shown };
        text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(LINK_TEXT_CHARS).collect()
    }

    fn finding(&self) -> Option<Finding> {
        if self.address.declines() {
            return None;
        }
        let shown = self.shown();
        let is_address = is_address(shown);
        let hits: Vec<Hit> = if shown.trim().is_empty() {
            find_words(&normalized(&self.link.alt))
        } else if is_address {
            Vec::new()
        } else {
            self.part.hits_in(self.link.range.clone()).to_vec()
        };
        let (kind, score, reason) = match meaning(&hits, &self.purpose.subject) {
            Meaning::Other => return None,
            Meaning::Kind(kind) => {
                let is_trade = hits.iter().any(|hit| hit.class == Class::Trade);
                if is_trade && !self.purpose.subject_names(kind) {
                    return None;
                }
                (kind, 0.8, "The text of the link says so.")
            }
            Meaning::Generic => self.of_surroundings(true)?,
            Meaning::Unknown if is_address => self.of_surroundings(true)?,
            Meaning::Unknown => {
                let finding = self.of_sentence()?;
                self.purpose.subject_names(finding.0).then_some(finding)?
            }
        };
        let kind = self.refined(kind)?;
        let is_direct = kind == LinkKind::SecureAccount || self.address.has_token();
        is_direct.then_some((kind, score, reason))
    }

    /// The kind in the light of what the mail is about; nothing if that makes it no action.
    fn refined(&self, kind: LinkKind) -> Option<LinkKind> {
        let purpose = self.purpose;
        let is_for_alert = purpose.subject_is_alert || (purpose.is_alert && !purpose.subject_names(kind));
        let kind = match kind {
            LinkKind::ResetPassword if is_for_alert => LinkKind::SecureAccount,
            LinkKind::Confirm if purpose.ends_subscription => LinkKind::ConfirmUnsubscribe,
            kind => kind,
        };
        let holds = match kind {
            LinkKind::ConfirmUnsubscribe => purpose.ends_subscription || self.asks_to_confirm_end(),
            LinkKind::SecureAccount => purpose.is_alert || purpose.subject_names(kind),
            LinkKind::AcceptInvitation => purpose.subject_names(kind) || purpose.invitations >= 2,
            LinkKind::SignIn => {
                !purpose.is_alert
                    && (purpose.subject_names(kind) || (purpose.has_hint && purpose.sign_ins >= 1))
            }
            LinkKind::Confirm | LinkKind::ResetPassword | LinkKind::Unlock => true,
        };
        holds.then_some(kind)
    }

    /// Whether the words before the link ask to confirm that a subscription ends.
    fn asks_to_confirm_end(&self) -> bool {
        let start = self.link.range.start;
        let before = self.part.hits_in(start.saturating_sub(BEFORE)..start);
        let has = |class: Class| before.iter().any(|hit| hit.class == class);
        has(Class::LinkUnsubscribe) && has(Class::LinkConfirm)
    }

    /// What its sentence says, else what stands before it, else the subject.
    fn of_surroundings(&self, by_subject: bool) -> Option<Finding> {
        let meaning = self.after().or_else(|| self.before());
        if self.address.is_of_site() && !self.is_settings_page(meaning) {
            return None;
        }
        match meaning {
            // `Access your account:` below a subject that asks to reset a password.
            Some(Meaning::Kind(LinkKind::SignIn)) if !self.purpose.subject_names(LinkKind::SignIn) => {
                let kind = self.purpose.of_subject().unwrap_or(LinkKind::SignIn);
                return Some((kind, 0.72, "The words around it say so."));
            }
            Some(Meaning::Kind(kind)) => return Some((kind, 0.72, "The words around it say so.")),
            Some(_) => return None,
            None => {}
        }
        let kind = self.purpose.of_subject().filter(|_| by_subject && self.address.has_random_token())?;
        Some((kind, 0.65, "The subject says so."))
    }

    /// Whether the page is one of settings, and what the words ask for is done there.
    fn is_settings_page(&self, meaning: Option<Meaning>) -> bool {
        let fits = match meaning {
            Some(Meaning::Kind(LinkKind::SecureAccount)) => true,
            // After an alert a new password secures the account.
            Some(Meaning::Kind(kind @ LinkKind::ResetPassword)) => {
                self.purpose.is_alert && !self.purpose.subject_names(kind)
            }
            Some(Meaning::Kind(LinkKind::ConfirmUnsubscribe | LinkKind::Confirm)) => {
                self.purpose.ends_subscription && self.address.has_random_token()
            }
            _ => false,
        };
        fits && self.address.is_of_settings()
    }

    fn of_sentence(&self) -> Option<Finding> {
        if self.address.is_of_site() || self.shown().trim().is_empty() {
            return None;
        }
        let text = &self.part.shown.text;
        let sentence = sentence_at(text, &line_at(text, &self.link.range), &self.link.range);
        let before = self.nearest_before(sentence.start.max(self.previous_end)..self.link.range.start);
        match self.after().or(before) {
            Some(Meaning::Kind(kind)) => Some((kind, 0.66, "The sentence says so.")),
            _ => None,
        }
    }

    /// The first word after the link, in its sentence.
    fn after(&self) -> Option<Meaning> {
        let text = &self.part.shown.text;
        let end = self.link.range.end;
        let sentence = sentence_at(text, &line_at(text, &self.link.range), &self.link.range);
        let to = sentence.end.min(end + AFTER).min(self.next_start());
        self.part.hits_in(end..to).iter().find_map(of_hit)
    }

    fn next_start(&self) -> usize {
        let links = &self.part.shown.links;
        let next = links.partition_point(|link| link.range.start <= self.link.range.start);
        links.get(next).map_or(usize::MAX, |link| link.range.start)
    }

    fn before(&self) -> Option<Meaning> {
        let start = self.link.range.start;
        self.nearest_before(start.saturating_sub(BEFORE).max(self.previous_end)..start)
    }

    /// The nearest word before; of its sentence the strongest kind.
    fn nearest_before(&self, range: Range<usize>) -> Option<Meaning> {
        let hits = self.part.hits_in(range);
        let nearest = hits.iter().rev().find(|hit| of_hit(hit).is_some())?;
        if of_hit(nearest) == Some(Meaning::Other) {
            return Some(Meaning::Other);
        }
        let (text, place) = (&self.part.shown.text, nearest.start..nearest.end);
        let sentence = sentence_at(text, &line_at(text, &place), &place);
        let of_sentence: Vec<Hit> =
            hits.iter().filter(|hit| hit.start >= sentence.start && of_hit(hit).is_some()).copied().collect();
        // `Decline the invitation: …`; what is declined is named after it.
        if of_sentence.first().is_some_and(|hit| hit.class == Class::LinkDecline) {
            return Some(Meaning::Other);
        }
        let of_sentence: Vec<Hit> =
            of_sentence.into_iter().filter(|hit| kind_of(hit.class).is_some()).collect();
        Some(meaning(&of_sentence, &self.purpose.subject))
    }
}

/// Whether the text of a link is an address itself: `shop.example/verify`.
fn is_address(shown: &str) -> bool {
    let shown = shown.trim();
    let has_path = shown.split_once('/').is_some_and(|(host, _)| host.contains('.') && !host.ends_with('.'));
    shown.contains("://") || (!shown.contains(char::is_whitespace) && (has_path || shown.starts_with("www.")))
}

fn of_hit(hit: &Hit) -> Option<Meaning> {
    match hit.class {
        Class::LinkOther | Class::LinkDecline => Some(Meaning::Other),
        class => kind_of(class).map(Meaning::Kind),
    }
}
