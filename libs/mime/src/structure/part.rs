//! The header section of a part.

use std::ops::Range;

use super::{Leaf, Role};
use crate::header::{Parameters, decode_header, decode_words, header_fields, unfolded};
use crate::text;
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
    encoding: TransferEncoding,
    attachment: bool,
    inline: bool,
    file_name: Option<String>,
    content_id: Option<String>,
}

impl Part {
    /// Parses a header section. `in_digest`: the default type is `message/rfc822` (RFC 2046 5.1.5).
    pub(super) fn parse(section: &[u8], in_digest: bool) -> Self {
        let default_type = if in_digest { "message/rfc822" } else { "text/plain" };
        let mut part = Self {
            media_type: default_type.into(),
            charset: None,
            boundary: None,
            encoding: TransferEncoding::Identity,
            attachment: false,
            inline: false,
            file_name: None,
            content_id: None,
        };
        let mut name = None;
        let mut seen = [false; 4];
        let mut first = |i: usize| !std::mem::replace(&mut seen[i], true);
        for field in header_fields(section) {
            if field.name.eq_ignore_ascii_case("content-type") && first(0) {
                let parsed = Parameters::parse(field.value);
                part.media_type = media_type(&parsed.value, default_type);
                part.charset = parsed.get("charset");
                part.boundary = parsed.get("boundary");
                name = parsed.get("name");
            } else if field.name.eq_ignore_ascii_case("content-transfer-encoding") && first(1) {
                part.encoding = TransferEncoding::parse(&unfolded(field.value));
            } else if field.name.eq_ignore_ascii_case("content-disposition") && first(2) {
                let parsed = Parameters::parse(field.value);
                part.inline = parsed.value.eq_ignore_ascii_case("inline");
                part.attachment = !part.inline && !parsed.value.is_empty();
                part.file_name = parsed.get("filename");
            } else if field.name.eq_ignore_ascii_case("content-id") && first(3) {
                let id = decode_header(field.value);
                let id = id.trim_start_matches('<').trim_end_matches('>').to_owned();
                part.content_id = Some(id).filter(|id| !id.is_empty());
            }
        }
        part.file_name = part.file_name.or(name).and_then(|name| file_name(&name));
        part
    }

    /// The boundary, if the part is a multipart with a valid one.
    pub(super) fn boundary(&self) -> Option<Vec<u8>> {
        let boundary = self.boundary.as_deref().filter(|_| self.media_type.starts_with("multipart/"))?;
        let boundary = boundary.trim_end().as_bytes();
        (1..=BOUNDARY_MAX).contains(&boundary.len()).then(|| boundary.to_vec())
    }

    pub(super) fn is_related(&self) -> bool {
        self.media_type == "multipart/related"
    }

    pub(super) fn is_digest(&self) -> bool {
        self.media_type == "multipart/digest"
    }

    /// Converts to a leaf. `first`: it is the first leaf. `in_related`: it belongs to another part.
    pub(super) fn into_leaf(self, body: Range<usize>, first: bool, in_related: bool) -> Leaf {
        let is_shown = !self.attachment && !in_related && (first || self.file_name.is_none());
        let role = match self.media_type.as_str() {
            "text/html" if is_shown => Role::Html,
            "text/plain" if is_shown => Role::Text,
            // A multipart without a boundary, or a message of another text type.
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

/// The media type; the default if the value is invalid (RFC 2045 5.2).
fn media_type(value: &str, default_type: &str) -> String {
    let tokens = value.split_once('/').map(|(main, sub)| [main.trim_end(), sub.trim_start()]);
    match tokens {
        Some(tokens) if tokens.iter().all(|token| !token.is_empty() && token.bytes().all(is_token)) => {
            tokens.join("/").to_ascii_lowercase()
        }
        _ => default_type.to_owned(),
    }
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
