//! One-time codes: what may be one, what speaks for it, and which are returned.

mod between;
mod candidate;
mod entry;
mod evidence;
mod layout;
mod run;
mod score;
mod shape;

use self::candidate::candidates;
use self::score::{Judgement, judge};
use crate::bounds::CODES_MAX;
use crate::part::Part;
use crate::text::Lines;
use crate::words::Class;
use crate::{Code, Source};

/// From this score on a candidate is a code.
const SCORE_MIN: f32 = 0.6;
/// A second code of a mail needs more.
const SECOND_SCORE_MIN: f32 = 0.85;

/// Candidates that are compared.
const FOUND_MAX: usize = 64;

/// A candidate that is a code, by its best evidence.
struct FoundCode {
    code: String,
    source: Source,
    judgement: Judgement,
    /// Parts that have it.
    parts: Vec<Source>,
}

/// Finds the codes of a message, best first.
pub(crate) fn find(parts: &[Part], from_domain: Option<&str>) -> Vec<Code> {
    let context = MessageContext::of(parts, from_domain);
    let mut found: Vec<FoundCode> = Vec::new();
    for part in parts {
        let lines = Lines::of(part.shown.text.whole());
        for candidate in candidates(&part.shown, &lines) {
            let Some(judgement) = judge(&candidate, part, &lines, &context) else { continue };
            if judgement.score < SCORE_MIN {
                continue;
            }
            if let Some(known) = found.iter_mut().find(|found| found.code == candidate.code) {
                known.add(part.source, judgement);
            } else if found.len() < FOUND_MAX {
                let (code, source) = (candidate.code, part.source);
                found.push(FoundCode { code, source, judgement, parts: vec![source] });
            }
        }
    }
    found.sort_by(|a, b| b.score().total_cmp(&a.score()));
    let second_may_be = !context.has_earlier_codes;
    let found = found.into_iter().enumerate().filter(|(rank, found)| {
        *rank == 0 || (second_may_be && found.judgement.is_labelled && found.score() >= SECOND_SCORE_MIN)
    });
    found.take(CODES_MAX).map(|(_, found)| found.into_code()).collect()
}

impl FoundCode {
    fn add(&mut self, source: Source, judgement: Judgement) {
        if !self.parts.contains(&source) {
            self.parts.push(source);
        }
        if judgement.score > self.judgement.score {
            (self.source, self.judgement) = (source, judgement);
        }
    }

    /// A code that stands in several parts is more likely one.
    fn score(&self) -> f32 {
        let further = if self.parts.len() > 1 { 0.05 } else { 0.0 };
        let subject = if self.parts.contains(&Source::Subject) && self.parts.len() > 1 { 0.05 } else { 0.0 };
        self.judgement.score + further + subject
    }

    fn into_code(self) -> Code {
        let confidence = (self.score().clamp(0.5, 0.99) * 100.0).round() / 100.0;
        Code { code: self.code, confidence, source: self.source, reason: self.judgement.reason }
    }
}

/// Octets of a mail that has no room for more than its code.
const TERSE_MAX: usize = 240;

/// Evidence of the whole message.
#[derive(Debug, Clone, Default)]
struct MessageContext {
    /// Whether it names a one-time code.
    has_otp: bool,
    /// Whether it names any code.
    has_code: bool,
    /// Whether it is about signing in or proving oneself.
    has_auth: bool,
    /// Whether it confirms something.
    has_confirm: bool,
    /// Whether its subject is about a code or signing in.
    subject_is_about_code: bool,
    /// Whether its subject is about signing in or proving oneself.
    subject_is_about_auth: bool,
    /// Whether its subject names a code.
    subject_names_code: bool,
    /// Whether it says what is said of one-time codes.
    has_hint: bool,
    /// Whether it says that a code is secret.
    has_secret: bool,
    /// Whether it is about a sale, a booking or a meeting.
    has_trade: bool,
    subject_is_trade: bool,
    /// Whether it names earlier codes or codes for later.
    has_earlier_codes: bool,
    /// Whether it has a unit, such as that of the minutes that a code is valid for.
    has_unit: bool,
    /// Whether nothing but a few words is shown.
    is_terse: bool,
    /// Words of the author's domain, in capitals.
    names: Vec<String>,
}

impl MessageContext {
    fn of(parts: &[Part], from_domain: Option<&str>) -> Self {
        let mut context = Self::default();
        let domain =
            from_domain.unwrap_or_default().chars().take(255).collect::<String>().to_ascii_uppercase();
        context.names = domain.split(['.', '-']).filter(|name| name.len() > 3).map(str::to_owned).collect();
        let lengths = parts.iter().map(|part| part.shown.text.len());
        context.is_terse = lengths.max().is_some_and(|longest| longest < TERSE_MAX);
        for part in parts {
            let is_subject = part.source == Source::Subject;
            for hit in part.hits.iter().filter(|hit| !part.shown.is_quoted(hit.start)) {
                match hit.class {
                    Class::Otp => context.has_otp = true,
                    Class::Code | Class::ConfirmCode => context.has_code = true,
                    Class::Auth => {
                        context.has_auth = true;
                        context.subject_is_about_auth |= is_subject;
                    }
                    Class::Confirm | Class::LinkConfirm => context.has_confirm = true,
                    Class::Hint => context.has_hint = true,
                    Class::Secret => {
                        context.has_hint = true;
                        context.has_secret = true;
                    }
                    Class::Trade | Class::OtherCode => {
                        context.has_trade = true;
                        context.subject_is_trade |= is_subject;
                    }
                    Class::Void | Class::Backup | Class::RecoveryCode => context.has_earlier_codes = true,
                    Class::Unit => context.has_unit = true,
                    _ => {}
                }
                context.subject_names_code |= is_subject && hit.class.names_code();
                context.subject_is_about_code |= is_subject
                    && matches!(
                        hit.class,
                        Class::Otp | Class::Code | Class::ConfirmCode | Class::Auth | Class::Confirm
                    );
            }
        }
        context
    }

    /// Whether anything says what codes are for, apart from a word for a code.
    fn is_about_proof(&self) -> bool {
        self.has_auth || self.has_otp || self.has_confirm || self.has_hint || self.subject_names_code
    }

    /// Whether a recovery code is asked for now, rather than one to be kept for later: it lapses, or must not be
    /// shared.
    fn recovers_now(&self) -> bool {
        (self.has_hint && self.has_unit) || self.has_secret
    }

    /// Whether a code that confirms something is a one-time code, rather than that of a booking.
    fn confirms_person(&self) -> bool {
        let is_named = self.subject_names_code && !self.subject_is_trade;
        let is_hinted = (self.has_secret || (self.has_auth && self.has_hint)) && !self.subject_is_trade;
        is_named || is_hinted || self.subject_is_about_auth || self.has_otp || !self.has_trade
    }
}
