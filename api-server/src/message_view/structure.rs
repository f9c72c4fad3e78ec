//! The parts of a message (RFC 2045, RFC 2046), found in one pass over its lines.
//!
//! The work is linear in the message's length whatever it contains: a line is compared with at
//! most 50 boundaries, and only if it begins with `--`. Messages within a message
//! (`message/rfc822`) are attachments as they stand and not looked into.

use std::ops::Range;

use super::header::{field_name_end, fields, line_end, parameters, shown};
use super::text;
use super::transfer::Encoding;

/// Levels of multiparts.
const LEVELS_MAX: usize = 50;
/// Parts, multiparts included.
const PARTS_MAX: usize = 1_000;
/// Characters of a file name.
const FILE_NAME_MAX: usize = 255;
/// Octets of a boundary (RFC 2046 allows 70).
const BOUNDARY_MAX: usize = 1_000;

/// What a leaf part is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Text,
    Html,
    Attachment,
}

/// A part that is no multipart.
#[derive(Debug, Clone)]
pub(super) struct Leaf {
    pub(super) role: Role,
    /// `type/subtype` in lower case.
    pub(super) media_type: String,
    pub(super) charset: Option<String>,
    pub(super) encoding: Encoding,
    /// Where its encoded body stands.
    pub(super) body: Range<usize>,
    pub(super) file_name: Option<String>,
    pub(super) content_id: Option<String>,
    pub(super) inline: bool,
}

/// An attachment with its place in the list and its decoded length.
#[derive(Debug, Clone)]
pub(super) struct Attachment {
    pub(super) index: usize,
    pub(super) size: usize,
    pub(super) media_type: String,
    charset: Option<String>,
    pub(super) encoding: Encoding,
    pub(super) body: Range<usize>,
    pub(super) file_name: Option<String>,
    pub(super) content_id: Option<String>,
    pub(super) inline: bool,
}

impl Attachment {
    /// The media type with its charset: the octets are as they were sent.
    pub(super) fn content_type_with_charset(&self) -> String {
        match &self.charset {
            Some(charset) if charset.bytes().all(is_token) => {
                format!("{}; charset={charset}", self.media_type)
            }
            _ => self.media_type.clone(),
        }
    }

    /// The name that it is saved under.
    pub(super) fn download_name(&self) -> String {
        self.file_name.clone().unwrap_or_else(|| format!("attachment-{}", self.index))
    }
}

/// The parts of a message.
#[derive(Debug)]
pub(super) struct Structure {
    pub(super) leaves: Vec<Leaf>,
    /// The message's own header section.
    pub(super) header: Range<usize>,
}

/// It has more levels or parts than are looked at.
struct TooComplex;

impl Structure {
    /// Finds the parts of a message. One that has too many becomes one opaque attachment.
    pub(super) fn of(raw: &[u8]) -> Self {
        let mut walker = Walker { raw, open: Vec::new(), leaves: Vec::new(), parts: 0 };
        let (section_end, body) = walker.header_section(0);
        let leaves = match walker.walk() {
            Ok(()) if walker.leaves.is_empty() => vec![Leaf::whole_body(body..raw.len())],
            Ok(()) => walker.leaves,
            Err(TooComplex) => vec![Leaf::opaque(raw.len())],
        };
        Self { leaves, header: 0..section_end }
    }

    /// The attachments in order, with their decoded lengths.
    pub(super) fn attachments(self, raw: &[u8]) -> Vec<Attachment> {
        let attachments = self.leaves.into_iter().filter(|leaf| leaf.role == Role::Attachment);
        attachments
            .enumerate()
            .map(|(index, leaf)| Attachment {
                index,
                size: leaf.encoding.decoded_len(&raw[leaf.body.clone()]),
                media_type: leaf.media_type,
                charset: leaf.charset,
                encoding: leaf.encoding,
                body: leaf.body,
                file_name: leaf.file_name,
                content_id: leaf.content_id,
                inline: leaf.inline,
            })
            .collect()
    }
}

impl Leaf {
    /// A multipart in which no part was found is shown as text.
    fn whole_body(body: Range<usize>) -> Self {
        Self {
            role: Role::Text,
            media_type: "text/plain".into(),
            charset: None,
            encoding: Encoding::Identity,
            body,
            file_name: None,
            content_id: None,
            inline: false,
        }
    }

    fn opaque(length: usize) -> Self {
        Self {
            role: Role::Attachment,
            media_type: "message/rfc822".into(),
            file_name: Some("message.eml".into()),
            ..Self::whole_body(0..length)
        }
    }
}

/// A multipart whose end is not yet found.
struct Open {
    boundary: Vec<u8>,
    related: bool,
    digest: bool,
    children: usize,
}

struct Delimiter {
    /// Where the content before it ends.
    content_end: usize,
    /// Where the line after it begins.
    after: usize,
    level: usize,
    closes: bool,
}

struct Walker<'a> {
    raw: &'a [u8],
    open: Vec<Open>,
    leaves: Vec<Leaf>,
    parts: usize,
}

impl Walker<'_> {
    fn walk(&mut self) -> Result<(), TooComplex> {
        let mut at = 0;
        loop {
            self.parts += 1;
            if self.parts > PARTS_MAX {
                return Err(TooComplex);
            }
            let (section_end, body) = self.header_section(at);
            let part = Part::of(&self.raw[at..section_end], self.open.last());
            let mut delimiter;
            if let Some(boundary) = part.boundary() {
                if self.open.len() == LEVELS_MAX {
                    return Err(TooComplex);
                }
                self.open.push(Open {
                    boundary,
                    related: part.media_type == "multipart/related",
                    digest: part.media_type == "multipart/digest",
                    children: 0,
                });
                delimiter = self.next_delimiter(body);
            } else {
                delimiter = self.next_delimiter(body);
                let end = delimiter.as_ref().map_or(self.raw.len(), |found| found.content_end.max(body));
                let first = self.leaves.is_empty();
                let in_related = self.open.last().is_some_and(|open| open.related && open.children > 1);
                self.leaves.push(part.into_leaf(body..end, first, in_related));
            }
            // Behind a closing delimiter follows an epilogue, up to one of an outer multipart.
            at = loop {
                let Some(found) = delimiter else { return Ok(()) };
                self.open.truncate(found.level + 1);
                if !found.closes {
                    break found.after;
                }
                self.open.pop();
                delimiter = self.next_delimiter(found.after);
            };
            if let Some(open) = self.open.last_mut() {
                open.children += 1;
            }
        }
    }

    /// End of the header section that begins at `at`, and beginning of the body. A line that
    /// can't be a field's ends the section without a blank line.
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

    /// The first delimiter line of an open multipart at or behind `from`, a line's beginning.
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

    /// Level of the open multipart that a line delimits, and whether it closes it.
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

/// What the header section of a part says.
struct Part {
    media_type: String,
    charset: Option<String>,
    boundary: Option<String>,
    encoding: Encoding,
    attachment: bool,
    inline: bool,
    file_name: Option<String>,
    content_id: Option<String>,
}

impl Part {
    fn of(section: &[u8], parent: Option<&Open>) -> Self {
        let default_type =
            if parent.is_some_and(|open| open.digest) { "message/rfc822" } else { "text/plain" };
        let mut part = Self {
            media_type: default_type.into(),
            charset: None,
            boundary: None,
            encoding: Encoding::Identity,
            attachment: false,
            inline: false,
            file_name: None,
            content_id: None,
        };
        let mut name = None;
        let mut seen = [false; 4];
        let mut first = |i: usize| !std::mem::replace(&mut seen[i], true);
        for field in fields(section) {
            if field.name.eq_ignore_ascii_case("content-type") && first(0) {
                let Some(parsed) = parameters(field.value) else { continue };
                part.media_type = media_type(parsed.ctype(), parsed.subtype(), default_type);
                part.charset = parsed.attribute("charset").map(str::to_owned);
                part.boundary = parsed.attribute("boundary").map(str::to_owned);
                name = parsed.attribute("name").map(str::to_owned);
            } else if field.name.eq_ignore_ascii_case("content-transfer-encoding") && first(1) {
                part.encoding = Encoding::of(&super::header::unfolded(field.value));
            } else if field.name.eq_ignore_ascii_case("content-disposition") && first(2) {
                let Some(parsed) = parameters(field.value) else { continue };
                part.inline = parsed.ctype().eq_ignore_ascii_case("inline");
                part.attachment = !part.inline && !parsed.ctype().is_empty();
                part.file_name = parsed.attribute("filename").map(str::to_owned);
            } else if field.name.eq_ignore_ascii_case("content-id") && first(3) {
                let id = shown(field.value);
                let id = id.trim_start_matches('<').trim_end_matches('>').to_owned();
                part.content_id = Some(id).filter(|id| !id.is_empty());
            }
        }
        part.file_name = part.file_name.or(name).and_then(|name| file_name(&name));
        part
    }

    /// The boundary, if it is a multipart that can be taken apart.
    fn boundary(&self) -> Option<Vec<u8>> {
        let boundary = self.boundary.as_deref().filter(|_| self.media_type.starts_with("multipart/"))?;
        let boundary = boundary.trim_end().as_bytes();
        (1..=BOUNDARY_MAX).contains(&boundary.len()).then(|| boundary.to_vec())
    }

    fn into_leaf(self, body: Range<usize>, first: bool, in_related: bool) -> Leaf {
        let is_shown = !self.attachment && !in_related && (first || self.file_name.is_none());
        let role = match self.media_type.as_str() {
            "text/html" if is_shown => Role::Html,
            "text/plain" if is_shown => Role::Text,
            // A multipart without a boundary, or a message that is nothing but some other text.
            other if is_shown && first && (other.starts_with("multipart/") || other.starts_with("text/")) => {
                Role::Text
            }
            _ => Role::Attachment,
        };
        Leaf {
            role,
            charset: self.charset,
            encoding: self.encoding,
            body,
            inline: self.inline || (in_related && !self.attachment),
            file_name: self.file_name,
            content_id: self.content_id,
            media_type: self.media_type,
        }
    }
}

/// What can't be understood counts as the default (RFC 2045 5.2).
fn media_type(main: &str, sub: Option<&str>, default_type: &str) -> String {
    match sub {
        Some(sub) if [main, sub].iter().all(|token| !token.is_empty() && token.bytes().all(is_token)) => {
            format!("{main}/{sub}").to_ascii_lowercase()
        }
        _ => default_type.to_owned(),
    }
}

/// RFC 2045 5.1.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?=".contains(&byte)
}

/// A name without control characters and without the path some software sends (RFC 2183 2.3),
/// cut; `None` where nothing is left.
fn file_name(name: &str) -> Option<String> {
    let name = text::line(&super::header::decode_words(name));
    let name = name.rsplit(['/', '\\']).next().unwrap_or("").trim();
    let name: String = name.chars().take(FILE_NAME_MAX).collect();
    (!name.is_empty() && name != "." && name != "..").then_some(name)
}

#[cfg(test)]
mod tests;
