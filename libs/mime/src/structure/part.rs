//! The header section of a part.

use std::ops::Range;

use super::{Leaf, Role};
use crate::header::{Parameters, decode_header, decode_words, header_fields, unfolded};
use crate::text::{self, Flowed};
use crate::transfer::TransferEncoding;

/// Maximum characters of a file name.
const FILE_NAME_MAX: usize = 255;
/// Maximum octets of a boundary (RFC 2046 allows 70).
const BOUNDARY_MAX: usize = 1_000;

/// The parsed header section of a part.
pub(super) struct Part {
    media_type: String,
    charset: Option<String>,
    boundary: Option<String>,
    /// The content id of the root of a `multipart/related`.
    start: Option<String>,
    flowed: Option<Flowed>,
    encoding: TransferEncoding,
    attachment: bool,
    inline: bool,
    file_name: Option<String>,
    content_id: Option<String>,
    has_location: bool,
}

/// Where a part is: what its multipart says of it.
#[derive(Debug, Clone, Copy)]
pub(super) enum PartContext<'a> {
    /// It is the whole message.
    Message,
    /// One of the forms of a text (RFC 2046 5.1.4).
    Alternative,
    /// The root, or what the root refers to (RFC 2387).
    Related {
        /// The content id of the root, if it is named.
        start: Option<&'a str>,
        /// What was shown of the multipart before.
        shown: ShownTexts,
    },
    /// Beside other parts (RFC 2046 5.1.3).
    Mixed {
        /// Whether it is the first of them.
        is_first: bool,
        /// What was shown of the multipart before.
        shown: ShownTexts,
    },
}

/// The kinds of text that were shown.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ShownTexts {
    text: bool,
    html: bool,
}

impl ShownTexts {
    pub(super) fn add(&mut self, role: Role) {
        self.text |= role == Role::Text;
        self.html |= role == Role::Html;
    }

    fn is_nothing(self) -> bool {
        !self.text && !self.html
    }
}

impl Part {
    /// Parses a header section. `in_digest`: the default type is `message/rfc822` (RFC 2046 5.1.5).
    pub(super) fn parse(section: &[u8], in_digest: bool) -> Self {
        let default_type = if in_digest { "message/rfc822" } else { "text/plain" };
        let mut part = Self {
            media_type: default_type.into(),
            charset: None,
            boundary: None,
            start: None,
            flowed: None,
            encoding: TransferEncoding::Identity,
            attachment: false,
            inline: false,
            file_name: None,
            content_id: None,
            has_location: false,
        };
        let mut name = None;
        let mut seen = [false; 4];
        let mut first = |i: usize| !std::mem::replace(&mut seen[i], true);
        for field in header_fields(section) {
            if field.name.eq_ignore_ascii_case("content-type") && first(0) {
                let parsed = Parameters::parse(field.value);
                part.media_type = media_type(&parsed.value, default_type);
                part.charset = parsed.get("charset").and_then(|label| charset(&label));
                part.boundary = parsed.get("boundary");
                part.start = parsed.get("start").map(|id| content_id(&id));
                part.flowed = flowed(&parsed);
                name = parsed.get("name").or_else(|| parsed.get("filename"));
            } else if field.name.eq_ignore_ascii_case("content-transfer-encoding") && first(1) {
                part.encoding = TransferEncoding::parse(&unfolded(field.value));
            } else if field.name.eq_ignore_ascii_case("content-disposition") && first(2) {
                let parsed = Parameters::parse(field.value);
                let disposition = parsed.value.split(|c| !is_token_char(c)).next().unwrap_or("");
                part.inline = disposition.eq_ignore_ascii_case("inline");
                part.attachment = !part.inline && !disposition.is_empty();
                part.file_name = parsed.get("filename").or_else(|| parsed.get("name"));
            } else if field.name.eq_ignore_ascii_case("content-id") && first(3) {
                part.content_id = Some(content_id(&decode_header(field.value))).filter(|id| !id.is_empty());
            } else if field.name.eq_ignore_ascii_case("content-location") {
                part.has_location = true;
            }
        }
        part.file_name = part.file_name.or(name).and_then(|name| file_name(&name));
        part
    }

    /// The boundary, if the part is a multipart with a valid one.
    pub(super) fn boundary(&self) -> Option<Vec<u8>> {
        let boundary = self.boundary.as_deref().filter(|_| self.is_multipart())?;
        let boundary = boundary.trim_end().as_bytes();
        (1..=BOUNDARY_MAX).contains(&boundary.len()).then(|| boundary.to_vec())
    }

    pub(super) fn is_multipart(&self) -> bool {
        self.media_type.starts_with("multipart/")
    }

    /// The type of a multipart, in lower case.
    pub(super) fn media_type(&self) -> &str {
        &self.media_type
    }

    /// The content id of the root of a multipart, if it is named.
    pub(super) fn start(&self) -> Option<&str> {
        self.start.as_deref()
    }

    /// The role of a leaf. `first`: it is the first one of the message.
    fn role(&self, context: PartContext<'_>, first: bool) -> Role {
        let is_html = self.media_type == "text/html";
        // The root can refer to it neither by an id nor by a location.
        let is_unreferenced = self.content_id.is_none() && !self.has_location && self.file_name.is_none();
        let is_shown = !self.attachment
            && match context {
                PartContext::Message | PartContext::Alternative => true,
                // Plain text refers to nothing: HTML after it is the text in another form.
                PartContext::Related { start, shown } => {
                    shown.is_nothing()
                        || (start.is_some() && start == self.content_id.as_deref())
                        || (is_html && !shown.html)
                        || is_unreferenced
                }
                // A name alone makes no file of the only text.
                PartContext::Mixed { is_first, shown } => {
                    self.file_name.is_none() || (shown.is_nothing() && (is_first || !self.inline))
                }
            };
        let is_fallback = first && !matches!(context, PartContext::Alternative);
        match self.media_type.as_str() {
            _ if !is_shown => Role::Attachment,
            "text/html" => Role::Html,
            "text/plain" => Role::Text,
            // A multipart without a boundary, or a message of another text type.
            other if is_fallback && (self.is_multipart() || other.starts_with("text/")) => Role::Text,
            _ => Role::Attachment,
        }
    }

    /// Converts to a leaf. `first`: it is the first one of the message.
    pub(super) fn into_leaf(self, body: Range<usize>, context: PartContext<'_>, first: bool) -> Leaf {
        let is_related = matches!(context, PartContext::Related { .. });
        Leaf {
            role: self.role(context, first),
            charset: self.charset,
            flowed: self.flowed.filter(|_| self.media_type == "text/plain"),
            encoding: self.encoding,
            body,
            inline: self.inline || (is_related && !self.attachment),
            file_name: self.file_name,
            content_id: self.content_id,
            media_type: self.media_type,
        }
    }
}

/// How the lines of a text flow, if they do (RFC 3676).
fn flowed(parameters: &Parameters) -> Option<Flowed> {
    let is = |name: &str, value: &str| {
        parameters.get(name).is_some_and(|found| found.trim().eq_ignore_ascii_case(value))
    };
    is("format", "flowed").then(|| Flowed { deletes_space: is("delsp", "yes") })
}

/// The label of a charset without quotes and punctuation that some software puts around it.
fn charset(label: &str) -> Option<String> {
    let label = label.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    (!label.is_empty()).then(|| label.to_owned())
}

/// A content id without angle brackets.
fn content_id(value: &str) -> String {
    value.trim_start_matches('<').trim_end_matches('>').to_owned()
}

/// The media type that a value begins with; the default if there is none (RFC 2045 5.2).
fn media_type(value: &str, default_type: &str) -> String {
    let token = |text: &str| text.find(|c| !is_token_char(c)).unwrap_or(text.len());
    let tokens = || {
        let (main, rest) = value.split_at(token(value));
        let rest = rest.trim_start().strip_prefix('/')?.trim_start();
        let sub = &rest[..token(rest)];
        (!main.is_empty() && !sub.is_empty()).then(|| format!("{main}/{sub}").to_ascii_lowercase())
    };
    tokens().unwrap_or_else(|| default_type.to_owned())
}

fn is_token_char(c: char) -> bool {
    u8::try_from(c).is_ok_and(is_token)
}

/// Whether a byte may be in a token (RFC 2045 5.1).
pub(super) fn is_token(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?=".contains(&byte)
}

/// A file name without control characters and without the directories that some software sends (RFC
/// 2183 2.3), truncated; `None` if nothing is left.
fn file_name(name: &str) -> Option<String> {
    let name = text::single_line(&decode_words(name));
    let name = name.rsplit(['/', '\\']).next().unwrap_or("").trim();
    let name: String = name.chars().take(FILE_NAME_MAX).collect();
    (!name.is_empty() && name != "." && name != "..").then_some(name)
}
