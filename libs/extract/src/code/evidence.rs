//! How a candidate hangs together with words that name a code, or another number.

use std::ops::Range;

use super::candidate::Candidate;
use super::context::Context;
use crate::Source;
use crate::text::{Emphasis, Lines, Part, ends_sentence, sentence_at};
use crate::words::{Class, Hit};

/// Where the word is that names the candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    /// In its sentence, before it; with the characters between them.
    Before(usize),
    /// In its sentence, after it.
    After(usize),
    /// In its line, in a sentence before.
    LineBefore,
    /// In a line above; with how many lines above.
    Above(usize),
    /// In a line below.
    Below(usize),
    /// In the subject, while it stands alone on a line of a body.
    Subject,
    /// In a body, while it stands in the subject.
    Body,
}

/// What speaks for a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Evidence {
    pub(super) relation: Relation,
    /// Whether the word names a one-time code, not just a code.
    pub(super) is_otp: bool,
    /// Whether the sentence of the word is about proving oneself.
    pub(super) is_about_auth: bool,
    /// Whether a second word names it from the other side.
    pub(super) is_from_both_sides: bool,
}

/// What the words nearest to a candidate say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// It is a code.
    Code(Evidence),
    /// It is something else.
    Other,
    /// Nothing.
    Silent,
}

/// Lines above that may name the code below them.
const LINES_ABOVE: usize = 6;
/// Lines below that may name the code above them.
const LINES_BELOW: usize = 3;
/// Octets between a word and a candidate.
const NEAR: usize = 700;
/// Characters between a word and a candidate that it labels.
const LABEL_GAP: usize = 4;

/// A candidate among the lines and words of its part.
pub(super) struct Place<'a> {
    candidate: &'a Candidate,
    part: &'a Part,
    lines: &'a Lines,
    first_line: usize,
    last_line: usize,
    line: Range<usize>,
    sentence: Range<usize>,
    context: &'a Context,
}

impl<'a> Place<'a> {
    pub(super) fn of(
        candidate: &'a Candidate,
        part: &'a Part,
        lines: &'a Lines,
        context: &'a Context,
    ) -> Self {
        let first_line = lines.index_at(candidate.range.start);
        let last_line = lines.index_at(candidate.range.end.saturating_sub(1));
        let start = lines.get(first_line).map_or(candidate.range.start, |line| line.start);
        let end = lines.get(last_line).map_or(candidate.range.end, |line| line.end);
        let line = start..end;
        let sentence = sentence_at(&part.shown.text, &line, &candidate.range);
        Self { candidate, part, lines, first_line, last_line, line, sentence, context }
    }

    /// What speaks for the candidate, unless something speaks against it or nothing does.
    pub(super) fn evidence(&self) -> Option<Evidence> {
        if self.is_void() {
            return None;
        }
        let before = self.before();
        let after = self.after();
        match (before, after) {
            (Verdict::Code(before), Verdict::Code(_)) => {
                return Some(Evidence { is_from_both_sides: true, ..before });
            }
            (Verdict::Other, _) => return None,
            (Verdict::Code(evidence), _) if evidence.relation != Relation::LineBefore => {
                return Some(evidence);
            }
            (_, Verdict::Code(evidence)) => return Some(evidence),
            _ => {}
        }
        if self.stands_out() {
            let above = self.above();
            let below = self.below();
            match (above, below) {
                (Verdict::Other, _) => return None,
                (Verdict::Code(above), Verdict::Code(_)) => {
                    return Some(Evidence { is_from_both_sides: true, ..above });
                }
                (Verdict::Code(evidence), _) | (Verdict::Silent, Verdict::Code(evidence)) => {
                    return Some(evidence);
                }
                _ => {}
            }
        }
        if let Verdict::Code(evidence) = before {
            return Some(evidence);
        }
        self.elsewhere()
    }

    /// Whether a unit or a currency follows or precedes.
    pub(super) fn has_unit(&self) -> bool {
        let text = &self.part.shown.text;
        let Range { start, end } = self.candidate.range;
        let near = |from: usize, to: usize| {
            to >= from && text[from..to].chars().all(|c| matches!(c, ' ' | '-' | '.'))
        };
        self.hits_in(start.saturating_sub(24)..end + 24).any(|hit| {
            let follows = hit.start >= end && hit.start <= end + 2 && near(end, hit.start);
            let precedes = hit.end <= start && hit.end + 2 >= start && near(hit.end, start);
            match hit.class {
                Class::Unit => follows,
                Class::Currency => follows || precedes,
                _ => false,
            }
        })
    }

    fn hits_in(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = &'a Hit> + use<'a> {
        let hits = &self.part.hits;
        let from = hits.partition_point(|hit| hit.start < range.start);
        let to = from + hits[from..].partition_point(|hit| hit.start < range.end);
        hits[from..to].iter()
    }

    /// Words that name codes or other numbers.
    fn names_in(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = &'a Hit> + use<'a> {
        self.hits_in(range).filter(|hit| {
            hit.class.names_code() || matches!(hit.class, Class::OtherCode | Class::Number | Class::Backup)
        })
    }

    /// Whether a word names a code that may be a one-time code, in this message.
    fn is_positive(&self, hit: &Hit) -> bool {
        match hit.class {
            Class::ConfirmCode => self.context.confirms_person(),
            class => class.names_code(),
        }
    }

    fn is_otp(&self, hit: &Hit) -> bool {
        matches!(hit.class, Class::Otp | Class::ConfirmCode)
    }

    fn is_about_auth(&self, range: Range<usize>) -> bool {
        self.hits_in(range).any(|hit| {
            matches!(
                hit.class,
                Class::Auth | Class::Confirm | Class::LinkConfirm | Class::LinkSignIn | Class::LinkReset
            )
        })
    }

    /// Whether there is a number between two places, which the word before it is about.
    fn has_number(&self, from: usize, to: usize) -> bool {
        let Some(between) = self.part.shown.text.get(from..to) else { return false };
        between.len() > NEAR
            || between
                .split(|c: char| !c.is_ascii_alphanumeric())
                .any(|word| word.bytes().filter(u8::is_ascii_digit).count() >= 3)
    }

    fn evidence_of(&self, relation: Relation, hit: &Hit, sentence: Range<usize>) -> Verdict {
        Verdict::Code(Evidence {
            relation,
            is_otp: self.is_otp(hit),
            is_about_auth: self.is_about_auth(sentence),
            is_from_both_sides: false,
        })
    }

    /// Whether the sentence says that the code is an earlier one.
    fn is_void(&self) -> bool {
        let text = &self.part.shown.text;
        let Range { start, end } = self.candidate.range;
        self.hits_in(self.sentence.clone()).filter(|hit| hit.class == Class::Void).any(|hit| {
            if hit.end <= start {
                return !self.has_number(hit.end, start) && start - hit.end < 60;
            }
            let Some(between) = text.get(end..hit.start) else { return false };
            let is_other_clause = between.contains([',', ';', '(', '、', '，', '،', '-'])
                || self.names_in(end..hit.start).next().is_some();
            !is_other_clause && between.len() < 60
        })
    }

    fn before(&self) -> Verdict {
        let start = self.candidate.range.start;
        let from = self.line.start.max(start.saturating_sub(NEAR));
        let mut other = false;
        for hit in self.names_in(from..start).rev() {
            if hit.end > start || self.has_number(hit.end, start) {
                continue;
            }
            let distance = self.part.shown.text[hit.end..start].chars().count();
            let is_in_sentence = hit.start >= self.sentence.start;
            if self.is_positive(hit) {
                if !is_in_sentence {
                    return if other {
                        Verdict::Other
                    } else {
                        self.evidence_of(Relation::LineBefore, hit, from..start)
                    };
                }
                return self.evidence_of(Relation::Before(distance), hit, self.sentence.clone());
            }
            let between = &self.part.shown.text[hit.end..start];
            if distance <= LABEL_GAP && !between.chars().any(char::is_alphabetic) {
                return Verdict::Other;
            }
            other |= is_in_sentence;
        }
        if other { Verdict::Other } else { Verdict::Silent }
    }

    fn after(&self) -> Verdict {
        let end = self.candidate.range.end;
        let hits = self.names_in(end..self.sentence.end);
        for hit in hits {
            if self.has_number(end, hit.start) {
                break;
            }
            if self.is_positive(hit) {
                let distance = self.part.shown.text[end..hit.start].chars().count();
                return self.evidence_of(Relation::After(distance), hit, self.sentence.clone());
            }
        }
        Verdict::Silent
    }

    /// Whether a candidate is set apart, so that lines above or below may be about it.
    fn stands_out(&self) -> bool {
        let Range { start, end } = self.candidate.range;
        let before =
            self.part.shown.text[self.line.start..start].chars().filter(|c| c.is_alphanumeric()).count();
        let after = self.part.shown.text[end..self.line.end].chars().filter(|c| c.is_alphanumeric()).count();
        self.candidate.is_alone
            || (before == 0 && after <= 30)
            || (self.part.shown.emphasis_at(start) == Emphasis::Large && before + after <= 60)
    }

    fn above(&self) -> Verdict {
        for distance in 1..=LINES_ABOVE.min(self.first_line) {
            let Some(line) = self.lines.get(self.first_line - distance) else { break };
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
            let free = |hit: &&Hit| !self.has_number(hit.end, line.end.max(hit.end));
            let positive = self.names_in(sentence.clone()).filter(free).rfind(|hit| self.is_positive(hit));
            let is_label = text[last.end..line.end].chars().filter(|c| c.is_alphanumeric()).count() <= 2
                && sentence.len() <= 60;
            return match positive {
                Some(hit) if self.is_positive(last) || !is_label => {
                    self.evidence_of(Relation::Above(distance), hit, sentence)
                }
                Some(_) => Verdict::Other,
                None if !free(&last) => {
                    if self.is_positive(last) {
                        Verdict::Silent
                    } else {
                        continue;
                    }
                }
                None => Verdict::Other,
            };
        }
        Verdict::Silent
    }

    fn below(&self) -> Verdict {
        for distance in 1..=LINES_BELOW {
            let Some(line) = self.lines.get(self.last_line + distance) else { break };
            if self.part.shown.is_quoted(line.start) || line.start - self.candidate.range.end > NEAR {
                break;
            }
            let text = &self.part.shown.text;
            let Some(first) = self.names_in(line.clone()).next() else {
                if is_only_number(&text[line]) {
                    break;
                }
                continue;
            };
            if !self.is_positive(first)
                || self.has_number(line.start, line.end.min(line.start + 120))
                || text[line.clone()].trim_end().ends_with([':', '：'])
            {
                break;
            }
            let sentence = sentence_at(text, &line, &(first.start..first.end));
            return self.evidence_of(Relation::Below(distance), first, sentence);
        }
        Verdict::Silent
    }

    /// Whether subject and body together speak for it.
    fn elsewhere(&self) -> Option<Evidence> {
        let names = self.context.has_otp
            || (self.context.has_code && (self.context.has_auth || self.context.has_hint));
        let relation = if self.part.source == Source::Subject {
            Relation::Body
        } else if self.candidate.is_alone && self.context.subject_names_code {
            Relation::Subject
        } else {
            return None;
        };
        names.then_some(Evidence {
            relation,
            is_otp: self.context.has_otp,
            is_about_auth: false,
            is_from_both_sides: false,
        })
    }
}

/// Whether a line is a number and nothing else.
fn is_only_number(line: &str) -> bool {
    let digits = line.chars().filter(char::is_ascii_digit).count();
    digits >= 4
        && line.chars().all(|c| !c.is_alphabetic())
        && !ends_sentence(line.chars().next_back().unwrap_or(' '), "")
}
