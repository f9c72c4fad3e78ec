//! The parts of a message, as a reader sees them.

mod quote;

use std::ops::Range;

use crate::text::{Shown, chars, plain};
use crate::words::{Hit, find_words};
use crate::{Message, Source, bounds, html, steps};
use quote::quoted_from;

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
