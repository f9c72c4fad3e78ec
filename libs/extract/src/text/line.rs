//! Lines and sentences of a text.

use std::ops::Range;

/// The lines of a text that have something on them.
pub(crate) struct Lines {
    ranges: Vec<Range<usize>>,
}

impl Lines {
    pub(crate) fn of(text: &str) -> Self {
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
    pub(crate) fn index_at(&self, at: usize) -> usize {
        self.ranges.partition_point(|range| range.start <= at).saturating_sub(1)
    }

    pub(crate) fn get(&self, index: usize) -> Option<Range<usize>> {
        self.ranges.get(index).cloned()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.ranges.iter().cloned()
    }
}

/// The line that a place is in.
pub(crate) fn line_at(text: &str, at: usize) -> Range<usize> {
    let start = text[..at].rfind('\n').map_or(0, |before| before + 1);
    start..text[at..].find('\n').map_or(text.len(), |len| at + len)
}

/// How far a sentence is looked for, in octets.
const SENTENCE_MAX: usize = 600;

/// The sentence of a line that a place is in; of a place that goes on beyond the line, that of its part in the line.
pub(crate) fn sentence_at(text: &str, line: &Range<usize>, place: &Range<usize>) -> Range<usize> {
    let place = place.start.clamp(line.start, line.end)..place.end.clamp(line.start, line.end);
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
pub(crate) fn ends_sentence(c: char, after: &str) -> bool {
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
