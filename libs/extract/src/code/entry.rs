//! Candidates that the reader is asked to enter, where no word names a code (`To confirm your address, enter
//! 482913.`), and what stands right before a candidate and introduces it (`your code is 123456`).

use std::ops::Range;

use super::evidence::{Evidence, Occurrence, Relation};
use super::shape::{Shape, is_year};
use crate::text::sentence_at;
use crate::words::Class;

/// Characters between the verb and what is entered.
const GAP_BEFORE: usize = 32;
/// The same where a colon or the like stands right before what is entered.
const GAP_INTRODUCED: usize = 70;
/// The same where the verb follows, as it does in many languages.
const GAP_AFTER: usize = 24;

impl Occurrence<'_> {
    /// Whether a verb asks to enter the candidate, in a mail about proving oneself.
    pub(super) fn entered(&self) -> Option<Evidence> {
        let verb = self.verb_before().or_else(|| self.verb_after()).or_else(|| self.verb_above());
        self.with_verb(verb.or_else(|| self.is_what())?)
    }

    /// The same where another number is named in the sentence: `For the order, enter 482913`.
    pub(super) fn entered_after_verb(&self) -> Option<Evidence> {
        self.with_verb(self.verb_before()?)
    }

    fn with_verb(&self, (relation, sentence): (Relation, Range<usize>)) -> Option<Evidence> {
        let context = self.context;
        let is_about_proof = context.has_auth || context.has_otp || context.has_confirm;
        let is_at_verb = matches!(relation, Relation::Before(0..=2));
        let is_about_auth = self.is_about_auth(sentence.clone());
        let is_asked_now = is_at_verb && is_about_auth && context.has_hint;
        let is_digits =
            matches!(self.candidate.shape, Shape::Digits) && (!is_year(&self.candidate.code) || is_asked_now);
        let is_code = is_digits || self.candidate.shape == Shape::Capitals;
        let is_about_trade =
            context.subject_is_trade || self.hits_in(sentence).any(|hit| hit.class == Class::Trade);
        // `Use 482913 to continue. Do not share it.`
        let is_secret = is_at_verb
            && context.has_secret
            && !context.has_trade
            && is_digits
            && !self.names_in(self.sentence.clone()).any(|hit| !hit.class.names_code());
        let fits = (is_about_proof || is_secret)
            && is_code
            && (context.has_otp || context.has_secret || !is_about_trade);
        (fits && (is_about_auth || context.subject_is_about_code || context.has_otp || is_secret)).then_some(
            Evidence {
                relation,
                is_otp: false,
                is_about_auth,
                is_entered: true,
                is_about_trade: false,
                is_from_both_sides: false,
            },
        )
    }

    fn verb_before(&self) -> Option<(Relation, Range<usize>)> {
        let start = self.candidate.range.start;
        let verbs = self
            .hits_in(self.sentence.start..start)
            .filter(|hit| hit.class == Class::Enter && hit.end <= start);
        let hit = self.clear_before(verbs, start).next()?;
        if self.names_in(hit.end..start).any(|name| !self.is_plain_number(name)) {
            return None;
        }
        let distance = self.part.shown.text[hit.end..start].chars().count();
        // What the sentence before says counts too: `Welcome, please confirm your address. Type 482913.`
        let from = self.line.start.max(self.sentence.start.saturating_sub(120));
        let most = if self.is_introduced() { GAP_INTRODUCED } else { GAP_BEFORE };
        (distance <= most).then_some((Relation::Before(distance), from..self.sentence.end))
    }

    fn verb_after(&self) -> Option<(Relation, Range<usize>)> {
        let end = self.candidate.range.end;
        let hit = self.hits_in(end..self.sentence.end).find(|hit| hit.class == Class::Enter)?;
        let distance = self.part.shown.text[end..hit.start].chars().count();
        (distance <= GAP_AFTER && !self.has_number(end, hit.start))
            .then(|| (Relation::After(distance), self.sentence.clone()))
    }

    /// `482913 is what you need to sign in`.
    fn is_what(&self) -> Option<(Relation, Range<usize>)> {
        let end = self.candidate.range.end;
        let mut words = self.part.shown.text[end..self.sentence.end].split_whitespace();
        let is_said = words.next().is_some_and(is_copula);
        let names_other = self.hits_in(self.sentence.clone()).any(|hit| {
            matches!(hit.class, Class::Number | Class::OtherCode | Class::Backup | Class::Unit | Class::Trade)
        });
        (is_said && !names_other && self.opens_sentence() && self.is_about_auth(self.sentence.clone()))
            .then(|| (Relation::After(0), self.sentence.clone()))
    }

    fn verb_above(&self) -> Option<(Relation, Range<usize>)> {
        if !self.stands_out() {
            return None;
        }
        let line = self.end_of_line(self.first_line.checked_sub(1)?)?;
        let hit = self.hits_in(line.clone()).rfind(|hit| hit.class == Class::Enter)?;
        let text = &self.part.shown.text;
        let sentence = sentence_at(text, &line, &(hit.start..hit.end));
        let is_last = text[sentence.end..line.end].chars().filter(|c| c.is_alphanumeric()).count() <= 2;
        (is_last && !self.has_number(hit.end, line.end.max(hit.end)))
            .then_some((Relation::Above(1), sentence))
    }
}

/// Octets before a candidate in which it may be said what it joins.
const TO_JOIN: usize = 160;

impl Occurrence<'_> {
    /// Whether nothing stands before the candidate in its sentence: `2031 is your PIN`.
    pub(super) fn opens_sentence(&self) -> bool {
        let before = &self.part.shown.text[self.sentence.start..self.candidate.range.start];
        !before.chars().any(char::is_alphanumeric)
    }

    /// Whether it is to join a class, a game or the like.
    pub(super) fn is_to_join(&self) -> bool {
        let start = self.candidate.range.start;
        self.hits_in(start.saturating_sub(TO_JOIN)..self.sentence.end).any(|hit| hit.class == Class::Join)
    }

    /// Whether what stands right before it introduces it: `is`, a colon.
    pub(super) fn is_introduced(&self) -> bool {
        let before = self.part.shown.text[self.line.start..self.candidate.range.start].trim_end();
        let before = before.trim_end_matches(['"', '*', '„', '“', '«', '「', '\'', '(', '[']).trim_end();
        let last = before.rsplit(|c: char| c.is_whitespace()).next().unwrap_or_default();
        before.ends_with([':', '：', '-', '=']) || is_copula(last) || ends_with_unspaced_copula(before)
    }
}

/// Words that stand between the name of a code and the code: `is`.
const COPULAS: &[&str] = &[
    "is",
    "ist",
    "lautet",
    "es",
    "est",
    "è",
    "é",
    "är",
    "er",
    "on",
    "je",
    "jest",
    "este",
    "to",
    "adalah",
    "ialah",
    "là",
    "είναι",
    "हूँ",
    "है",
    "هو",
    "هي",
    "היא",
    "הוא",
    "yra",
    "ir",
    "ay",
    "ni",
    "است",
    "ہے",
    "е",
    "це",
    "это",
];

/// The same, of scripts without spaces.
const UNSPACED_COPULAS: &[&str] = &["は", "是", "为", "為", "คือ", "은", "는"];

/// Whether a word stands between the name of a code and the code.
pub(super) fn is_copula(word: &str) -> bool {
    COPULAS.contains(&word)
}

/// Whether a text of a script without spaces ends with such a word.
pub(super) fn ends_with_unspaced_copula(text: &str) -> bool {
    UNSPACED_COPULAS.iter().any(|copula| text.ends_with(copula))
}
