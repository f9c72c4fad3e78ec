//! One-time codes: what may be one, what speaks for it, and which are returned.

mod between;
mod candidate;
mod context;
mod copula;
mod entry;
mod evidence;
mod introduction;
mod layout;
mod line;
mod run;
mod score;
mod shape;
mod touch;

use crate::bounds::CODES_MAX;
use crate::part::Part;
use crate::text::Lines;
use crate::{Code, Source};
use candidate::candidates;
use context::Context;
use score::{Judgement, judge};

/// From this score on a candidate is a code.
const SCORE_MIN: f32 = 0.6;
/// A second code of a mail needs more.
const SECOND_SCORE_MIN: f32 = 0.85;

/// Candidates that are compared.
const FOUND_MAX: usize = 64;

/// A candidate that is a code, by its best evidence.
struct Found {
    code: String,
    source: Source,
    judgement: Judgement,
    /// Parts that have it.
    parts: Vec<Source>,
}

/// Finds the codes of a message, best first.
pub(crate) fn find(parts: &[Part], from_domain: Option<&str>) -> Vec<Code> {
    let context = Context::of(parts, from_domain);
    let mut found: Vec<Found> = Vec::new();
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
                found.push(Found { code, source, judgement, parts: vec![source] });
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

impl Found {
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
