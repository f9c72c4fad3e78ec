//! Iterates over the leaf parts of a message, line by line.

use std::ops::Range;

use super::Leaf;
use super::part::Part;
use crate::header::{field_name_end, line_end};

/// Maximum nesting of multiparts.
const LEVELS_MAX: usize = 50;
/// Maximum parts, including multiparts.
pub(super) const PARTS_MAX: usize = 1_000;

/// The message exceeds the limits of nesting or parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooComplex;

/// A multipart whose closing delimiter was not found yet.
#[derive(Debug)]
struct OpenMultipart {
    boundary: Vec<u8>,
    related: bool,
    digest: bool,
    children: usize,
}

/// A delimiter line (RFC 2046 5.1.1).
struct Delimiter {
    /// The end of the content before it.
    content_end: usize,
    /// The start of the line after it.
    after: usize,
    /// The index of the multipart that it delimits.
    level: usize,
    closes: bool,
}

/// A lazy iterator over the leaf parts of a message, in order. It yields at least one part, or an
/// error as the last item.
#[derive(Debug)]
pub struct Leaves<'a> {
    raw: &'a [u8],
    /// The end of the header section of the message, and the start of its body.
    header: (usize, usize),
    /// The start of the next part.
    at: Option<usize>,
    open: Vec<OpenMultipart>,
    parts: usize,
    /// Whether no leaf was found yet.
    first: bool,
}

impl Iterator for Leaves<'_> {
    type Item = Result<Leaf, TooComplex>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(at) = self.at.take() {
            if let Some(found) = self.part(at).transpose() {
                self.first = false;
                return Some(found);
            }
        }
        let is_empty = std::mem::take(&mut self.first);
        is_empty.then(|| Ok(Leaf::whole_body(self.header.1..self.raw.len())))
    }
}

impl<'a> Leaves<'a> {
    /// The leaves of a message.
    pub fn new(raw: &'a [u8]) -> Self {
        let mut leaves = Self { raw, header: (0, 0), at: Some(0), open: Vec::new(), parts: 0, first: true };
        leaves.header = leaves.header_section(0);
        leaves
    }

    /// The range of the header section of the message.
    pub fn header(&self) -> Range<usize> {
        0..self.header.0
    }

    /// Parses the part at `at`; `None` if it is a multipart.
    fn part(&mut self, at: usize) -> Result<Option<Leaf>, TooComplex> {
        self.parts += 1;
        if self.parts > PARTS_MAX {
            return Err(TooComplex);
        }
        let (section_end, body) = if at == 0 { self.header } else { self.header_section(at) };
        let part = Part::parse(&self.raw[at..section_end], self.open.last().is_some_and(|open| open.digest));
        if let Some(boundary) = part.boundary() {
            if self.open.len() == LEVELS_MAX {
                return Err(TooComplex);
            }
            self.open.push(OpenMultipart {
                boundary,
                related: part.is_related(),
                digest: part.is_digest(),
                children: 0,
            });
            let delimiter = self.next_delimiter(body);
            self.at = self.next_part(delimiter);
            return Ok(None);
        }
        let delimiter = self.next_delimiter(body);
        let end = delimiter.as_ref().map_or(self.raw.len(), |found| found.content_end.max(body));
        let in_related = self.open.last().is_some_and(|open| open.related && open.children > 1);
        self.at = self.next_part(delimiter);
        Ok(Some(part.into_leaf(body..end, self.first, in_related)))
    }

    /// The start of the part after a delimiter. After a closing one there is an epilogue, up to a
    /// delimiter of an outer multipart.
    fn next_part(&mut self, mut delimiter: Option<Delimiter>) -> Option<usize> {
        loop {
            let found = delimiter?;
            self.open.truncate(found.level + 1);
            if !found.closes {
                self.open.last_mut()?.children += 1;
                return Some(found.after);
            }
            self.open.pop();
            delimiter = self.next_delimiter(found.after);
        }
    }

    /// The end of the header section that starts at `at`, and the start of the body. A line that is
    /// not part of a field ends the section without a blank line.
    fn header_section(&self, at: usize) -> (usize, usize) {
        let mut line = at;
        while line < self.raw.len() {
            let end = line_end(self.raw, line);
            let content = &self.raw[line..end];
            match content {
                b"\r\n" | b"\n" => return (line, end),
                [b' ' | b'\t', ..] if line > at => {}
                _ if self.delimiter(line, end).is_some() => return (line, line),
                _ if field_name_end(content).is_some()
                    || content.starts_with(b"From ")
                    || content.starts_with(b">From ") => {}
                _ => return (line, line),
            }
            line = end;
        }
        (line, line)
    }

    /// The first delimiter line of an open multipart from `from` on, which is the start of a line.
    fn next_delimiter(&self, from: usize) -> Option<Delimiter> {
        if self.open.is_empty() {
            return None;
        }
        let mut line = from;
        while line < self.raw.len() {
            let end = line_end(self.raw, line);
            if let Some((level, closes)) = self.delimiter(line, end) {
                let content_end = match &self.raw[from..line] {
                    [.., b'\r', b'\n'] => line - 2,
                    [.., b'\n'] => line - 1,
                    _ => line,
                };
                return Some(Delimiter { content_end, after: end, level, closes });
            }
            line = end;
        }
        None
    }

    /// The index of the open multipart that a line delimits, and whether the line closes it.
    fn delimiter(&self, line: usize, end: usize) -> Option<(usize, bool)> {
        let text = self.raw[line..end].strip_prefix(b"--")?.trim_ascii_end();
        for (level, open) in self.open.iter().enumerate().rev() {
            match text.strip_prefix(open.boundary.as_slice()) {
                Some(b"") => return Some((level, false)),
                Some(b"--") => return Some((level, true)),
                _ => {}
            }
        }
        None
    }
}
