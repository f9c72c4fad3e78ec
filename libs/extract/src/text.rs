//! What a reader sees of a part, in one form for subject, text and HTML: a text of which only pieces of known length
//! are looked at, its lines and sentences, its links, and what stands out or is quoted.

pub(crate) mod chars;
pub(crate) mod plain;
mod url_scan;

use std::ops::{Index, Range};

use self::url_scan::urls_in;
use crate::{bounds, steps};

/// How much a piece of text stands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Emphasis {
    /// As the text around it.
    None,
    /// Bold or in another type.
    Bold,
    /// Larger, spaced out, or a heading.
    Large,
}

/// A link, and where its text is.
#[derive(Debug, Clone)]
pub(crate) struct ShownLink {
    /// The address as written, entities decoded.
    pub(crate) address: String,
    /// The text of the link in [`Shown::text`].
    pub(crate) range: Range<usize>,
    /// What stands for an image in the link; it is not shown.
    pub(crate) alt: String,
}

/// The text of a part as it is shown.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shown {
    /// Lines; cells of a table are apart by tabs.
    pub(crate) text: Text,
    /// What stands out, in order, not overlapping.
    pub(crate) emphasis: Vec<(Range<usize>, Emphasis)>,
    /// What is quoted from an earlier mail, in order.
    pub(crate) quoted: Vec<Range<usize>>,
    /// The links, in order.
    pub(crate) links: Vec<ShownLink>,
    /// What relative links are resolved against.
    pub(crate) base: Option<String>,
    /// Whether hidden text was left out.
    pub(crate) left_out_hidden: bool,
    /// Whether there was more than fits.
    pub(crate) cut: bool,
}

impl Shown {
    /// Whether the place is in a quotation.
    pub(crate) fn is_quoted(&self, at: usize) -> bool {
        let after = self.quoted.partition_point(|range| range.start <= at);
        after > 0 && self.quoted[after - 1].end > at
    }

    /// How much the text at a place stands out.
    pub(crate) fn emphasis_at(&self, at: usize) -> Emphasis {
        let after = self.emphasis.partition_point(|(range, _)| range.start <= at);
        match after.checked_sub(1).map(|before| &self.emphasis[before]) {
            Some((range, emphasis)) if range.end > at => *emphasis,
            _ => Emphasis::None,
        }
    }

    /// The addresses that stand in the text itself become links, unless they are in one.
    pub(crate) fn link_addresses(&mut self) {
        let mut found = Vec::new();
        for range in urls_in(self.text.whole()) {
            let after = self.links.partition_point(|link| link.range.start <= range.start);
            let is_in_link = after > 0 && self.links[after - 1].range.end > range.start;
            if !is_in_link && self.links.len() + found.len() < bounds::LINKS_MAX {
                let address = self.text[range.clone()].to_owned();
                found.push(ShownLink { address, range, alt: String::new() });
            }
        }
        self.links.append(&mut found);
        self.links.sort_by_key(|link| link.range.start);
    }
}

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
