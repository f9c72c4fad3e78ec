//! Lines and sentences of a text.

use std::ops::Range;

/// The lines of a text that have something on them.
pub(super) struct Lines {
    ranges: Vec<Range<usize>>,
}

impl Lines {
    pub(super) fn of(text: &str) -> Self {
        let mut ranges = Vec::new();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            if line.chars().any(|c| !c.is_whitespace()) {
                ranges.push(at..at + line.trim_end_matches('\n').len());
            }
            at += line.len();
        }
        Self { ranges }
    }

    /// The number of the line at a place.
    pub(super) fn index_at(&self, at: usize) -> usize {
        self.ranges.partition_point(|range| range.start <= at).saturating_sub(1)
    }

    pub(super) fn get(&self, index: usize) -> Option<Range<usize>> {
        self.ranges.get(index).cloned()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.ranges.iter().cloned()
    }
}

/// How far a sentence is looked for, in octets.
const SENTENCE_MAX: usize = 600;

/// The sentence of a line that a place is in.
pub(super) fn sentence_at(text: &str, line: &Range<usize>, place: &Range<usize>) -> Range<usize> {
    let from = text.ceil_char_boundary(line.start.max(place.start.saturating_sub(SENTENCE_MAX)));
    let to = text.floor_char_boundary(line.end.min(place.end + SENTENCE_MAX));
    let before = &text[from..place.start];
    let start =
        before.char_indices().rev().find(|(at, c)| ends_sentence(*c, &text[from + at + c.len_utf8()..]));
    let after = &text[place.end..to];
    let end = after.char_indices().find(|(at, c)| ends_sentence(*c, &after[at + c.len_utf8()..]));
    start.map_or(from, |(at, c)| from + at + c.len_utf8())..end.map_or(to, |(at, _)| place.end + at)
}

/// Whether a character ends a sentence, before what follows.
pub(super) fn ends_sentence(c: char, after: &str) -> bool {
    match c {
        '。' | '！' | '？' | '।' | '؟' | '۔' | '\n' => true,
        '.' | '!' | '?' | ';' => after
            .chars()
            .next()
            .is_none_or(|next| next.is_whitespace() || matches!(next, '"' | '\'' | ')' | '»' | '”')),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_sentence_around() {
        let text = "Hello you. Your code is 482913. Bye.";
        let at = text.find("482913").unwrap();
        assert_eq!(&text[sentence_at(text, &(0..text.len()), &(at..at + 6))], " Your code is 482913");
    }

    #[test]
    fn counts_lines_that_have_something() {
        let lines = Lines::of("a\n\n  \nb\n");
        assert_eq!(lines.iter().collect::<Vec<_>>(), [0..1, 6..7]);
        assert_eq!(lines.index_at(6), 1);
    }
}
