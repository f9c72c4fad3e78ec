//! Iterates over the leaf parts of a message, line by line.

use std::ops::Range;

use super::Leaf;
use super::part::{Part, PartContext, ShownTexts};
use crate::header::{continues_field, field_name_end, line_end};

/// Maximum nesting of multiparts.
const LEVELS_MAX: usize = 50;
/// Maximum parts, including multiparts.
pub(super) const PARTS_MAX: usize = 1_000;

/// Maximum octets of a boundary that is not named (RFC 2046 5.1.1).
const GUESSED_BOUNDARY_MAX: usize = 70;

/// The message exceeds the limits of nesting or parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooComplex;

/// A multipart whose closing delimiter was not found yet.
#[derive(Debug)]
struct OpenMultipart {
    boundary: Vec<u8>,
    kind: MultipartKind,
    /// The content id of the root, if it is named.
    start: Option<String>,
    /// Parts that began.
    parts: usize,
    /// What was shown of it, or before it where it is not an alternative to that.
    shown: ShownTexts,
}

/// What a multipart says of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MultipartKind {
    Alternative,
    Related,
    Digest,
    /// Any other type (RFC 2046 5.1.3).
    Mixed,
}

impl MultipartKind {
    fn of(media_type: &str) -> Self {
        match media_type {
            "multipart/alternative" => Self::Alternative,
            "multipart/related" => Self::Related,
            "multipart/digest" => Self::Digest,
            _ => Self::Mixed,
        }
    }
}

impl OpenMultipart {
    /// The place of the next part.
    fn part_context(&self) -> PartContext<'_> {
        match self.kind {
            MultipartKind::Alternative => PartContext::Alternative,
            MultipartKind::Related => {
                PartContext::Related { start: self.start.as_deref(), shown: self.shown }
            }
            MultipartKind::Digest | MultipartKind::Mixed => {
                PartContext::Mixed { is_first: self.parts == 1, shown: self.shown }
            }
        }
    }
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
        let around = self.open.last();
        let part = Part::parse(
            &self.raw[at..section_end],
            around.is_some_and(|open| open.kind == MultipartKind::Digest),
        );
        if let Some(boundary) = part.boundary().or_else(|| self.guessed_boundary(&part, body)) {
            if self.open.len() == LEVELS_MAX {
                return Err(TooComplex);
            }
            let shown = around.filter(|open| open.kind != MultipartKind::Alternative).map(|open| open.shown);
            self.open.push(OpenMultipart {
                boundary,
                kind: MultipartKind::of(part.media_type()),
                start: part.start().map(str::to_owned),
                parts: 0,
                shown: shown.unwrap_or_default(),
            });
            let delimiter = self.next_delimiter(body);
            self.at = self.next_part(delimiter);
            return Ok(None);
        }
        let delimiter = self.next_delimiter(body);
        let end = delimiter.as_ref().map_or(self.raw.len(), |found| found.content_end.max(body));
        let context = self.open.last().map_or(PartContext::Message, OpenMultipart::part_context);
        let leaf = part.into_leaf(body..end, context, self.first);
        self.open.iter_mut().for_each(|open| open.shown.add(leaf.role));
        self.at = self.next_part(delimiter);
        Ok(Some(leaf))
    }

    /// The boundary of a multipart that names none: that of its first line that looks like a delimiter, before the
    /// header section or the blank line of a part.
    fn guessed_boundary(&self, part: &Part, body: usize) -> Option<Vec<u8>> {
        if !part.is_multipart() {
            return None;
        }
        let mut line = body;
        while line < self.raw.len() {
            let end = line_end(self.raw, line);
            if self.delimiter(line, end).is_some() {
                return None;
            }
            let boundary = self.raw[line..end].strip_prefix(b"--").map(<[u8]>::trim_ascii_end);
            if let Some(boundary) = boundary.filter(|boundary| is_boundary(boundary)) {
                let next = &self.raw[end..line_end(self.raw, end)];
                let begins_part = next.trim_ascii().is_empty() || field_name_end(next).is_some();
                return begins_part.then(|| boundary.to_vec());
            }
            line = end;
        }
        None
    }

    /// The start of the part after a delimiter. After a closing one there is an epilogue, up to a
    /// delimiter of an outer multipart.
    fn next_part(&mut self, mut delimiter: Option<Delimiter>) -> Option<usize> {
        loop {
            let found = delimiter?;
            self.open.truncate(found.level + 1);
            if !found.closes {
                self.open.last_mut()?.parts += 1;
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
        let mut before: &[u8] = b"";
        while line < self.raw.len() {
            let end = line_end(self.raw, line);
            let content = &self.raw[line..end];
            match content {
                b"\r\n" | b"\n" => return (line, end),
                _ if line > at && continues_field(before, content) => {}
                _ if self.delimiter(line, end).is_some() => return (line, line),
                _ if field_name_end(content).is_some()
                    || content.starts_with(b"From ")
                    || content.starts_with(b">From ") => {}
                _ => return (line, line),
            }
            (before, line) = (content, end);
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

/// Whether what follows `--` may be a boundary that no field names (RFC 2046 5.1.1), and no rule or signature.
fn is_boundary(text: &[u8]) -> bool {
    (1..=GUESSED_BOUNDARY_MAX).contains(&text.len())
        && text.iter().all(u8::is_ascii_graphic)
        && text.iter().any(u8::is_ascii_alphanumeric)
        && !text.ends_with(b"--")
}
