//! A text of which only pieces of known length are looked at.

use std::ops::{Index, Range};

use crate::steps;

/// The text of a part.
///
/// A candidate or a link takes the piece around it, of a length that is bounded; there is no way to take all that comes
/// before or after a place. So the work for each is bounded, too, however long a line is. Only what goes through the
/// text once takes the [`whole`](Self::whole).
#[derive(Debug, Clone, Default)]
pub(crate) struct Text(String);

impl Text {
    /// All of it, for a single pass.
    pub(crate) fn whole(&self) -> &str {
        &self.0
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }

    /// Octets.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn push_str(&mut self, piece: &str) {
        self.0.push_str(piece);
    }

    /// The piece of a range; nothing if the range is none of this text.
    pub(crate) fn get(&self, range: Range<usize>) -> Option<&str> {
        steps::count(range.len());
        self.0.get(range)
    }

    /// Up to `max` octets that end at a place.
    pub(crate) fn before(&self, at: usize, max: usize) -> &str {
        &self[self.start_of(at, max)..at]
    }

    /// Up to `max` octets that begin at a place.
    pub(crate) fn after(&self, at: usize, max: usize) -> &str {
        &self[at..self.end_of(at, max)]
    }

    /// Where up to `max` octets begin that end at a place.
    pub(crate) fn start_of(&self, at: usize, max: usize) -> usize {
        self.0.ceil_char_boundary(at.saturating_sub(max))
    }

    /// Where up to `max` octets end that begin at a place.
    pub(crate) fn end_of(&self, at: usize, max: usize) -> usize {
        self.0.floor_char_boundary(at.saturating_add(max))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl Index<Range<usize>> for Text {
    type Output = str;

    fn index(&self, range: Range<usize>) -> &str {
        steps::count(range.len());
        &self.0[range]
    }
}
