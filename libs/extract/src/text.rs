//! What a reader sees of a part, in one form for subject, text and HTML.

pub(crate) mod chars;
pub(crate) mod fold;
mod line;
mod piece;
pub(crate) mod plain;
mod url_scan;

use std::ops::Range;

use crate::bounds;

pub(crate) use line::{Lines, ends_sentence, line_at, sentence_at};
pub(crate) use piece::Text;
use url_scan::urls_in;

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
