//! What a part says about itself.

use std::ops::Range;

use super::{Leaf, Role};
use crate::header::{Parameters, decode_header, decode_words, header_fields, unfolded};
use crate::text;
use crate::transfer::TransferEncoding;

/// Characters of a file name.
const FILE_NAME_MAX: usize = 255;
/// Octets of a boundary (RFC 2046 allows 70).
const BOUNDARY_MAX: usize = 1_000;

/// What the header section of a part says.
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
    /// `in_digest`: the default of its type is another there (RFC 2046 5.1.5).
    pub(super) fn of(section: &[u8], in_digest: bool) -> Self {
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

    /// The boundary, if it is a multipart that can be taken apart.
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

    /// `first`: nothing was found before it. `in_related`: it belongs to another part.
    pub(super) fn into_leaf(self, body: Range<usize>, first: bool, in_related: bool) -> Leaf {
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
fn media_type(value: &str, default_type: &str) -> String {
    let tokens = value.split_once('/').map(|(main, sub)| [main.trim_end(), sub.trim_start()]);
    match tokens {
        Some(tokens) if tokens.iter().all(|token| !token.is_empty() && token.bytes().all(is_token)) => {
            tokens.join("/").to_ascii_lowercase()
        }
        _ => default_type.to_owned(),
    }
}

/// RFC 2045 5.1.
pub(super) fn is_token(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?=".contains(&byte)
}

/// A name without control characters and without the path some software sends (RFC 2183 2.3),
/// cut; `None` where nothing is left.
fn file_name(name: &str) -> Option<String> {
    let name = text::single_line(&decode_words(name));
    let name = name.rsplit(['/', '\\']).next().unwrap_or("").trim();
    let name: String = name.chars().take(FILE_NAME_MAX).collect();
    (!name.is_empty() && name != "." && name != "..").then_some(name)
}
