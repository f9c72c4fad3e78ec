//! Lines and sentences of a text.

use std::ops::Range;

use super::Text;

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

/// How far a sentence is looked for, in octets.
const SENTENCE_MAX: usize = 600;

/// The line that a place begins in, as far as its sentence reaches.
pub(crate) fn line_at(text: &Text, place: &Range<usize>) -> Range<usize> {
    let before = text.before(place.start, SENTENCE_MAX);
    let after = text.after(place.start, place.len() + SENTENCE_MAX);
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let end = after.find('\n').unwrap_or(after.len());
    place.start - before.len() + start..place.start + end
}

/// The sentence of a line that a place is in; of a place that goes on beyond the line, that of its part in the line.
pub(crate) fn sentence_at(text: &Text, line: &Range<usize>, place: &Range<usize>) -> Range<usize> {
    let place = place.start.clamp(line.start, line.end)..place.end.clamp(line.start, line.end);
    let before = text.before(place.start, SENTENCE_MAX.min(place.start - line.start));
    let after = text.after(place.end, SENTENCE_MAX.min(line.end - place.end));
    let (from, to) = (place.start - before.len(), place.end + after.len());
    let mut next = first_char(text.after(place.start, char::MAX_LEN_UTF8));
    let start = before.char_indices().rev().find(|(_, c)| ends_sentence(*c, next.replace(*c)));
    let end = after.char_indices().find(|(at, c)| ends_sentence(*c, first_char(&after[at + c.len_utf8()..])));
    start.map_or(from, |(at, c)| from + at + c.len_utf8())..end.map_or(to, |(at, _)| place.end + at)
}

fn first_char(text: &str) -> Option<char> {
    text.chars().next()
}

/// Whether a character ends a sentence, before the next one.
pub(crate) fn ends_sentence(c: char, next: Option<char>) -> bool {
    match c {
        '。' | '！' | '？' | '।' | '؟' | '۔' | '\n' => true,
        '.' | '!' | '?' | ';' => {
            next.is_none_or(|next| next.is_whitespace() || matches!(next, '"' | '\'' | ')' | '»' | '”'))
        }
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
        let sentence = sentence_at(&Text::from(text.to_owned()), &(0..text.len()), &(at..at + 6));
        assert_eq!(&text[sentence], " Your code is 482913");
    }

    #[test]
    fn counts_lines_that_have_something() {
        let lines = Lines::of("a\n\n  \nb\n");
        assert_eq!(lines.iter().collect::<Vec<_>>(), [0..1, 6..7]);
        assert_eq!(lines.index_at(6), 1);
    }
}
