//! How a candidate hangs together with words that name a code, or another number.

use std::ops::Range;

use super::candidate::Candidate;
use super::shape::has_few_vowels;
use super::{MessageContext, between};
use crate::Source;
use crate::part::Part;
use crate::text::{Lines, sentence_at};
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
    /// Whether no word names it, and the reader is asked to enter it.
    pub(super) is_entered: bool,
    /// Whether that sentence is about a sale, a door or the like, and about nothing to prove.
    pub(super) is_about_trade: bool,
    /// Whether a second word names it from the other side.
    pub(super) is_from_both_sides: bool,
}

/// What the words nearest to a candidate say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NearbyWords {
    /// It is a code.
    Code(Evidence),
    /// It is something else.
    Other,
    /// Something else is named in its sentence, but not right beside it.
    Distant,
    /// Nothing.
    Silent,
}

/// Octets between a word and a candidate.
pub(super) const NEAR: usize = 700;
/// Octets of a line that count, on each side of a candidate.
const LINE_MAX: usize = 800;
/// Characters between a word and a candidate that it labels.
const LABEL_GAP: usize = 4;
/// Octets between a candidate and a word that says that it is an earlier code.
const VOID_GAP: usize = 60;
/// Octets between `instead of` and what is replaced.
const INSTEAD_GAP: usize = 2;
/// Octets after a word that says that a code is void, in which it is said when.
const WHEN_MAX: usize = 40;

/// A candidate among the lines and words of its part.
pub(super) struct Occurrence<'a> {
    pub(super) candidate: &'a Candidate,
    pub(super) part: &'a Part,
    pub(super) lines: &'a Lines,
    pub(super) first_line: usize,
    pub(super) last_line: usize,
    /// Its line, or its lines, as far as they are near.
    pub(super) line: Range<usize>,
    pub(super) sentence: Range<usize>,
    pub(super) context: &'a MessageContext,
}

impl<'a> Occurrence<'a> {
    pub(super) fn of(
        candidate: &'a Candidate,
        part: &'a Part,
        lines: &'a Lines,
        context: &'a MessageContext,
    ) -> Self {
        let first_line = lines.index_at(candidate.range.start);
        let last_line = lines.index_at(candidate.range.end.saturating_sub(1));
        let text = &part.shown.text;
        let start = lines.get(first_line).map_or(candidate.range.start, |line| line.start);
        let end = lines.get(last_line).map_or(candidate.range.end, |line| line.end);
        let line = start.max(text.start_of(candidate.range.start, LINE_MAX))
            ..end.min(text.end_of(candidate.range.end, LINE_MAX));
        let sentence = sentence_at(text, &line, &candidate.range);
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
            (NearbyWords::Code(before), NearbyWords::Code(_)) => {
                return Some(Evidence { is_from_both_sides: true, ..before });
            }
            (NearbyWords::Other, _) => return None,
            (NearbyWords::Distant, NearbyWords::Code(evidence))
                if matches!(evidence.relation, Relation::After(0..=12)) =>
            {
                return Some(evidence);
            }
            (NearbyWords::Distant, _) => return self.entered_after_verb(),
            (NearbyWords::Code(evidence), _) if evidence.relation != Relation::LineBefore => {
                return Some(evidence);
            }
            (_, NearbyWords::Code(evidence)) => return Some(evidence),
            _ => {}
        }
        if self.stands_out() {
            let above = self.above();
            let below = self.below();
            match (above, below) {
                (NearbyWords::Other, _) => return None,
                (NearbyWords::Code(above), NearbyWords::Code(_)) => {
                    return Some(Evidence { is_from_both_sides: true, ..above });
                }
                (NearbyWords::Code(evidence), _) | (NearbyWords::Silent, NearbyWords::Code(evidence)) => {
                    return Some(evidence);
                }
                _ => {}
            }
        }
        if let NearbyWords::Code(evidence) = before {
            return Some(evidence);
        }
        self.entered().or_else(|| self.elsewhere())
    }

    /// Whether the candidate is a word that is known, or one that begins as such and can be spoken.
    pub(super) fn is_word(&self) -> bool {
        let Range { start, end } = self.candidate.range;
        !has_few_vowels(&self.candidate.code)
            && self.hits_in(start.saturating_sub(60)..end).any(|hit| hit.end > start)
    }

    /// Whether a unit or a currency follows or precedes.
    pub(super) fn has_unit(&self) -> bool {
        let text = &self.part.shown.text;
        let Range { start, end } = self.candidate.range;
        let near = |from: usize, to: usize| {
            to >= from && text[from..to].chars().all(|c| matches!(c, ' ' | '-' | '.'))
        };
        self.hits_in(start.saturating_sub(24)..end + 24).any(|hit| {
            let follows = hit.start >= end
                && hit.start <= end + 2
                && near(end, hit.start)
                && text[end..hit.start] != *". ";
            let precedes = hit.end <= start && hit.end + 2 >= start && near(hit.end, start);
            match hit.class {
                Class::Unit => follows,
                Class::Currency => follows || precedes,
                _ => false,
            }
        })
    }

    pub(super) fn hits_in(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = &'a Hit> + use<'a> {
        self.part.hits_in(range).iter()
    }

    /// Words that name codes or other numbers.
    pub(super) fn names_in(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = &'a Hit> + use<'a> {
        self.hits_in(range).filter(|hit| {
            hit.class.names_code()
                || matches!(hit.class, Class::OtherCode | Class::Number | Class::Backup | Class::RecoveryCode)
        })
    }

    /// Whether what a word names is what the code is for, as in `verification code for the order: 482913`.
    fn is_of_code(&self, hit: &Hit) -> bool {
        let text = &self.part.shown.text;
        let gap = &text[hit.end..self.candidate.range.start];
        let name = self.hits_in(self.sentence.start..hit.start).rfind(|hit| hit.class == Class::Otp);
        hit.class == Class::Number
            && gap.contains([':', '：'])
            && name.is_some_and(|name| {
                let between = text.get(name.end..hit.start).unwrap_or(",");
                between.len() <= 40 && !between.contains([',', ';', '(', ':', '，', '、', '\t', '/'])
            })
    }

    /// Whether a word says just that there is a number, as in `enter the number`.
    pub(super) fn is_plain_number(&self, hit: &Hit) -> bool {
        self.hits_in(hit.start..hit.start + 1)
            .any(|other| other.class == Class::Digits && other.end == hit.end)
    }

    /// Whether a word names a code that may be a one-time code, in this message.
    pub(super) fn is_positive(&self, hit: &Hit) -> bool {
        match hit.class {
            Class::ConfirmCode => self.context.confirms_person(),
            Class::RecoveryCode => self.context.recovers_now(),
            class => class.names_code(),
        }
    }

    fn is_otp(&self, hit: &Hit) -> bool {
        matches!(hit.class, Class::Otp | Class::ConfirmCode | Class::RecoveryCode)
    }

    pub(super) fn is_about_auth(&self, range: Range<usize>) -> bool {
        self.hits_in(range).any(|hit| {
            matches!(
                hit.class,
                Class::Auth | Class::Confirm | Class::LinkConfirm | Class::LinkSignIn | Class::LinkReset
            )
        })
    }

    /// Whether there is a number between two places, which the word before it is about.
    pub(super) fn has_number(&self, from: usize, to: usize) -> bool {
        between::has_number(self.part, from, to)
    }

    /// Those words that have no number between them and a place after them, nearest first. What is between two of
    /// them is looked at once.
    pub(super) fn clear_before<'b>(
        &'b self,
        words: impl DoubleEndedIterator<Item = &'a Hit> + 'b,
        place: usize,
    ) -> impl Iterator<Item = &'a Hit> + 'b {
        let mut clear_from = place;
        words.rev().take_while(move |word| {
            let is_clear = !self.has_number(word.end, clear_from);
            clear_from = clear_from.min(word.end);
            is_clear
        })
    }

    pub(super) fn evidence_of(&self, relation: Relation, hit: &Hit, sentence: Range<usize>) -> NearbyWords {
        let is_about_auth = self.is_about_auth(sentence.clone());
        let is_about_proof = self.context.subject_names_code
            || self.hits_in(sentence.clone()).any(|hit| matches!(hit.class, Class::Auth | Class::LinkSignIn));
        let is_about_trade = !is_about_proof
            && self.hits_in(sentence).any(|hit| matches!(hit.class, Class::Trade | Class::OtherCode));
        NearbyWords::Code(Evidence {
            relation,
            is_otp: self.is_otp(hit)
                && !(hit.class == Class::ConfirmCode && is_about_trade && !self.context.has_secret),
            is_about_auth,
            is_entered: false,
            is_about_trade,
            is_from_both_sides: false,
        })
    }

    /// Whether the sentence says that the code is an earlier one.
    fn is_void(&self) -> bool {
        let Range { start, .. } = self.candidate.range;
        self.hits_in(self.sentence.clone()).any(|hit| match hit.class {
            Class::Instead => start.checked_sub(hit.end).is_some_and(|gap| gap <= INSTEAD_GAP),
            Class::Void if hit.end <= start => self.is_voided_before(hit),
            Class::Void => self.is_voided_after(hit),
            _ => false,
        })
    }

    /// Whether a word before it says that it is an earlier code.
    fn is_voided_before(&self, void: &Hit) -> bool {
        let start = self.candidate.range.start;
        let is_timed =
            || self.hits_in(void.start.saturating_sub(24)..void.start).any(|hit| hit.class == Class::Unit);
        start - void.end < VOID_GAP && !is_timed() && !self.has_number(void.end, start)
    }

    /// Whether a word after it says that it is an earlier code.
    fn is_voided_after(&self, void: &Hit) -> bool {
        let end = self.candidate.range.end;
        let is_near = void.start.checked_sub(end).is_some_and(|gap| gap < VOID_GAP);
        let Some(between) = self.part.shown.text.get(end..void.start).filter(|_| is_near) else {
            return false;
        };
        let is_other_clause = between.contains([',', ';', '(', '、', '，', '،', '-'])
            || self.names_in(end..void.start).next().is_some();
        !is_other_clause && !self.is_said_when(void)
    }

    /// Whether a time says from when on it is void: `482913 is no longer valid after 10 minutes`.
    fn is_said_when(&self, void: &Hit) -> bool {
        let text = &self.part.shown.text;
        let to = text.end_of(void.end, WHEN_MAX).min(self.sentence.end);
        let has_time = text.get(void.end..to).is_some_and(|when| when.contains(|c: char| c.is_ascii_digit()))
            && !self.has_number(void.end, to);
        let has_unit = || {
            self.hits_in(self.candidate.range.end..void.end + WHEN_MAX).any(|hit| hit.class == Class::Unit)
        };
        has_time || has_unit()
    }

    fn before(&self) -> NearbyWords {
        let start = self.candidate.range.start;
        let from = self.line.start.max(start.saturating_sub(NEAR));
        let mut other = false;
        let text = &self.part.shown.text;
        let names = self.names_in(from..start).filter(|hit| hit.end <= start);
        for hit in self.clear_before(names, start) {
            let is_in_sentence = hit.start >= self.sentence.start;
            if self.is_positive(hit) {
                if !is_in_sentence {
                    return if other {
                        NearbyWords::Distant
                    } else {
                        self.evidence_of(Relation::LineBefore, hit, from..start)
                    };
                }
                let distance = text[hit.end..start].chars().count();
                return self.evidence_of(Relation::Before(distance), hit, self.sentence.clone());
            }
            let is_near = start - hit.end <= LABEL_GAP * char::MAX_LEN_UTF8;
            let label = text.get(hit.end..start).filter(|_| is_near);
            let is_label = label
                .is_some_and(|gap| gap.chars().count() <= LABEL_GAP && !gap.chars().any(char::is_alphabetic));
            if is_label && !self.is_plain_number(hit) && !self.is_of_code(hit) {
                return NearbyWords::Other;
            }
            other |= is_in_sentence;
        }
        if other { NearbyWords::Distant } else { NearbyWords::Silent }
    }

    fn after(&self) -> NearbyWords {
        let end = self.candidate.range.end;
        let mut clear_to = end;
        for hit in self.names_in(end..self.sentence.end) {
            if self.has_number(clear_to, hit.start) {
                break;
            }
            clear_to = hit.start;
            if self.is_positive(hit) {
                let distance = self.part.shown.text[end..hit.start].chars().count();
                return self.evidence_of(Relation::After(distance), hit, self.sentence.clone());
            }
        }
        NearbyWords::Silent
    }

    /// Whether subject and body together speak for it.
    fn elsewhere(&self) -> Option<Evidence> {
        let is_whole = self.candidate.is_alone && self.lines.get(3).is_none() && !self.context.has_trade;
        let names = self.context.has_otp
            || (self.context.has_code && (self.context.has_auth || self.context.has_hint || is_whole));
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
            is_entered: false,
            is_about_trade: false,
            is_from_both_sides: false,
        })
    }
}
