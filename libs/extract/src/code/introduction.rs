//! Whether what stands right before a candidate introduces it.

use super::copula::{ends_with_unspaced_copula, is_copula};
use super::evidence::Place;
use crate::words::Class;

/// Octets before a candidate in which it may be said what it joins.
const TO_JOIN: usize = 160;

impl Place<'_> {
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
