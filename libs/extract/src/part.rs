//! The parts of a message, as a reader sees them, and where an earlier mail begins that is quoted below the reply.

use std::ops::Range;

use crate::text::{Shown, Text, chars, plain};
use crate::words::{Class, Hit, find_words};
use crate::{Message, Source, bounds, html, steps};

/// A part of a message, read, with the words that were found in it.
pub(crate) struct Part {
    pub(crate) source: Source,
    pub(crate) shown: Shown,
    /// Words with a meaning here, in order.
    pub(crate) hits: Vec<Hit>,
}

impl Part {
    fn new(source: Source, mut shown: Shown) -> Self {
        shown.link_addresses();
        let hits = find_words(shown.text.whole());
        if let Some(from) = quoted_from(&shown.text, &hits) {
            shown.quoted.retain(|range| range.start < from);
            if let Some(last) = shown.quoted.last_mut() {
                last.end = last.end.min(from);
            }
            shown.quoted.push(from..shown.text.len());
        }
        Self { source, shown, hits }
    }

    /// The words that begin in a range, in order.
    pub(crate) fn hits_in(&self, range: Range<usize>) -> &[Hit] {
        let from = self.hits.partition_point(|hit| hit.start < range.start);
        let to = from + self.hits[from..].partition_point(|hit| hit.start < range.end);
        steps::count(to - from);
        &self.hits[from..to]
    }
}

/// Reads the parts of a message: subject, text, HTML.
pub(crate) fn parts(message: &Message<'_>) -> Vec<Part> {
    let subject: String = message.subject.chars().take(bounds::SUBJECT_CHARS).collect();
    let subject = chars::normalized(&subject.replace(['\r', '\n', '\t'], " "));
    let subject = Shown { text: subject.into(), ..Shown::default() };
    let mut parts = vec![Part::new(Source::Subject, subject)];
    if let Some(text) = message.text {
        parts.push(Part::new(Source::Text, plain::read(bounds::prefix(text, bounds::TEXT_MAX))));
    }
    if let Some(html) = message.html {
        let shown = html::read(html, bounds::SHOWN_MAX, html::Characters::Normalized);
        parts.push(Part::new(Source::Html, shown));
    }
    parts
}

/// Lines that the fields of a quoted header may take, and octets of them.
const HEADER_LINES: usize = 6;
const HEADER_MAX: usize = 2_048;
/// Octets of white space and asterisks before or after the name of such a field.
const MARGIN_MAX: usize = 80;
/// Octets after the beginning of a quotation in which something is quoted.
const GAP_MAX: usize = 700;

/// Where in a text the rest is quoted: after `On … wrote:`, `---- Original message ----`, or fields of a header.
/// Quotations by `>` are marked line by line, and what follows them is not.
fn quoted_from(text: &Text, hits: &[Hit]) -> Option<usize> {
    let mut at = 0;
    let mut hits = hits.iter().filter(|hit| hit.class.is_of_quotation()).peekable();
    for line in text.whole().split_inclusive('\n') {
        let end = at + line.len();
        let (mut is_wrote, mut is_heading, mut is_from) = (false, false, false);
        while let Some(hit) = hits.next_if(|hit| hit.start < end) {
            is_wrote |= hit.class == Class::QuoteWrote;
            is_heading |= hit.class == Class::QuoteHeading;
            is_from |= hit.class == Class::QuoteFrom && opens_line(text, hit.start);
        }
        let begins = is_attribution(line, is_wrote)
            || (is_heading && is_heading_line(line))
            || (is_from && has_colon(line) && has_subject(text, end, hits.clone()));
        if begins && is_followed(text, end) {
            return Some(at);
        }
        at = end;
    }
    None
}

/// `On Monday, Ada <ada@example.org> wrote:`, in any language where it has an address.
fn is_attribution(line: &str, is_wrote: bool) -> bool {
    let line = line.trim_end();
    let digits = line.bytes().filter(u8::is_ascii_digit).count();
    let has_address = line.contains('@') && line.contains('<');
    line.len() < 300 && line.ends_with(':') && digits >= 1 && (is_wrote || (has_address && digits >= 4))
}

fn is_heading_line(line: &str) -> bool {
    let line = line.trim();
    line.chars().count() < 80 && (line.starts_with("--") || line.starts_with("__") || line.starts_with("=="))
}

fn has_colon(line: &str) -> bool {
    line.contains(':')
}

/// Whether something follows that is not marked as quoted line by line.
fn is_followed(text: &Text, end: usize) -> bool {
    let next = text.after(end, GAP_MAX).trim_start();
    !next.starts_with('>') && !next.is_empty()
}

/// Whether nothing but white space and asterisks is before a place in its line.
fn opens_line(text: &Text, at: usize) -> bool {
    let before = text.before(at, MARGIN_MAX);
    let rest = before.trim_end_matches(['*', ' ', '\t']);
    rest.ends_with('\n') || (rest.is_empty() && before.len() == at)
}

/// Whether a subject field follows within a few lines.
fn has_subject<'a>(text: &Text, from: usize, hits: impl Iterator<Item = &'a Hit>) -> bool {
    let piece = text.after(from, HEADER_MAX);
    let end = from + piece.match_indices('\n').nth(HEADER_LINES).map_or(piece.len(), |(at, _)| at);
    hits.take_while(|hit| hit.start < end).any(|hit| {
        hit.class == Class::QuoteSubject
            && opens_line(text, hit.start)
            && text.after(hit.end, MARGIN_MAX).trim_start_matches(['*', ' ']).starts_with(':')
    })
}
