//! What lines above and below say of a candidate that stands out.

use std::ops::Range;

use super::evidence::{NEAR, NearbyWords, Occurrence, Relation};
use crate::text::{Emphasis, ends_sentence, sentence_at};
use crate::words::Class;

/// Lines above that may name the code below them.
const LINES_ABOVE: usize = 6;
/// Lines below that may name the code above them.
const LINES_BELOW: usize = 3;

impl Occurrence<'_> {
    /// Whether a candidate is set apart, so that lines above or below may be about it.
    pub(super) fn stands_out(&self) -> bool {
        let Range { start, end } = self.candidate.range;
        let before =
            self.part.shown.text[self.line.start..start].chars().filter(|c| c.is_alphanumeric()).count();
        let after = self.part.shown.text[end..self.line.end].chars().filter(|c| c.is_alphanumeric()).count();
        self.candidate.is_alone
            || (before == 0 && after <= 30)
            || (self.part.shown.emphasis_at(start) == Emphasis::Large && before + after <= 60)
    }

    /// The end of a line above, as far as it is near.
    pub(super) fn end_of_line(&self, index: usize) -> Option<Range<usize>> {
        let line = self.lines.get(index)?;
        Some(line.start.max(self.part.shown.text.start_of(line.end, NEAR))..line.end)
    }

    pub(super) fn above(&self) -> NearbyWords {
        for distance in 1..=LINES_ABOVE.min(self.first_line) {
            let Some(line) = self.end_of_line(self.first_line - distance) else { break };
            if self.part.shown.is_quoted(line.start) || self.candidate.range.start - line.end > NEAR {
                break;
            }
            let text = &self.part.shown.text;
            let Some(last) = self.names_in(line.clone()).next_back() else {
                if is_only_number(&text[line]) {
                    break;
                }
                continue;
            };
            let sentence = sentence_at(text, &line, &(last.start..last.end));
            let is_clear = !self.has_number(last.end, line.end.max(last.end));
            let names = self.names_in(sentence.clone());
            let positive = self.clear_before(names, line.end).find(|hit| self.is_positive(hit));
            // Its last word may be on the next line.
            let rest = text.get(last.end..line.end).unwrap_or_default();
            let is_label = rest.chars().filter(|c| c.is_alphanumeric()).count() <= 2
                && sentence.len() <= 60
                && !(self.is_about_auth(sentence.clone())
                    || self
                        .hits_in(sentence.clone())
                        .any(|hit| matches!(hit.class, Class::Enter | Class::Hint | Class::Secret)));
            return match positive {
                Some(hit) if self.is_positive(last) || !is_label => {
                    self.evidence_of(Relation::Above(distance), hit, sentence)
                }
                Some(_) => NearbyWords::Other,
                None if !is_clear => {
                    if self.is_positive(last) {
                        NearbyWords::Silent
                    } else {
                        continue;
                    }
                }
                None => NearbyWords::Other,
            };
        }
        NearbyWords::Silent
    }

    pub(super) fn below(&self) -> NearbyWords {
        for distance in 1..=LINES_BELOW {
            let Some(whole) = self.lines.get(self.last_line + distance) else { break };
            let text = &self.part.shown.text;
            let line = whole.start..whole.end.min(text.end_of(whole.start, NEAR));
            if self.part.shown.is_quoted(line.start) || line.start - self.candidate.range.end > NEAR {
                break;
            }
            let Some(first) = self.names_in(line.clone()).next() else {
                if is_only_number(&text[line]) {
                    break;
                }
                continue;
            };
            if !self.is_positive(first)
                || self.has_number(line.start, line.end.min(line.start + 120))
                || text.before(whole.end, NEAR.min(whole.len())).trim_end().ends_with([':', '：'])
            {
                break;
            }
            let sentence = sentence_at(text, &line, &(first.start..first.end));
            return self.evidence_of(Relation::Below(distance), first, sentence);
        }
        NearbyWords::Silent
    }
}

/// Whether a line is a number and nothing else.
fn is_only_number(line: &str) -> bool {
    let digits = line.chars().filter(char::is_ascii_digit).count();
    digits >= 4
        && line.chars().all(|c| !c.is_alphabetic())
        && !ends_sentence(line.chars().next_back().unwrap_or(' '), None)
}
