//! The parts of a message (RFC 2045, RFC 2046), found in one pass over its lines.
//!
//! The work is linear in the length of the message: a line is compared with at most 50 boundaries,
//! and only if it starts with `--`. Messages within a message (`message/rfc822`) are attachments and
//! are not parsed.

mod leaves;
mod part;

use std::borrow::Cow;
use std::ops::Range;

pub use leaves::{Leaves, TooComplex};

use crate::flowed::Flowed;
use crate::text;
use crate::transfer::TransferEncoding;

/// The role of a leaf part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Part of the message's plain text.
    Text,
    /// Part of the message's HTML.
    Html,
    /// Anything else.
    Attachment,
}

/// A part that is not a multipart.
#[derive(Debug, Clone)]
pub struct Leaf {
    /// Its role.
    pub role: Role,
    /// `type/subtype` in lower case.
    pub media_type: String,
    /// The declared charset.
    pub charset: Option<String>,
    /// How the lines of a plain text flow, if they do.
    flowed: Option<Flowed>,
    /// The encoding of its body.
    pub encoding: TransferEncoding,
    /// The range of its encoded body in the message.
    pub body: Range<usize>,
    /// The file name, decoded, without directories, at most 255 characters.
    pub file_name: Option<String>,
    /// The content id without angle brackets.
    pub content_id: Option<String>,
    /// Whether it is displayed within the text.
    pub inline: bool,
}

/// An attachment with its index and its decoded length.
#[derive(Debug, Clone)]
pub struct Attachment {
    /// Its index among the attachments, from 0.
    pub index: usize,
    /// Octets of the decoded body.
    pub size: usize,
    /// The part.
    pub leaf: Leaf,
}

impl Attachment {
    /// As [`Leaf::content_type_with_charset`].
    pub fn content_type_with_charset(&self) -> String {
        self.leaf.content_type_with_charset()
    }

    /// The file name for a download.
    pub fn download_name(&self) -> String {
        self.leaf.file_name.clone().unwrap_or_else(|| format!("attachment-{}", self.index))
    }
}

/// The parts of a message.
#[derive(Debug)]
pub struct Structure {
    /// The leaf parts in their order, at least one.
    pub leaves: Vec<Leaf>,
    /// The range of the header section of the message.
    pub header: Range<usize>,
}

impl Structure {
    /// Parses a message. One with too many parts becomes a single attachment.
    pub fn parse(raw: &[u8]) -> Self {
        let leaves = Leaves::new(raw);
        let header = leaves.header();
        let leaves = leaves.collect::<Result<_, TooComplex>>();
        Self { leaves: leaves.unwrap_or_else(|TooComplex| vec![Leaf::opaque(raw.len())]), header }
    }

    /// The attachments in order, with their decoded lengths.
    pub fn attachments(self, raw: &[u8]) -> Vec<Attachment> {
        let attachments = self.leaves.into_iter().filter(|leaf| leaf.role == Role::Attachment);
        attachments
            .enumerate()
            .map(|(index, leaf)| Attachment {
                index,
                size: leaf.encoding.decoded_len(&raw[leaf.body.clone()]),
                leaf,
            })
            .collect()
    }
}

impl Leaf {
    /// The media type with its charset, for octets that are not converted.
    pub fn content_type_with_charset(&self) -> String {
        match &self.charset {
            Some(charset) if charset.bytes().all(part::is_token) => {
                format!("{}; charset={charset}", self.media_type)
            }
            _ => self.media_type.clone(),
        }
    }

    /// The decoded text of the part, without byte order mark and soft line breaks (RFC 3676), and with U+FFFD for
    /// U+0000. HTML may declare its charset itself.
    pub fn text<'a>(&self, raw: &'a [u8]) -> Cow<'a, str> {
        self.text_of(&raw[self.body.clone()])
    }

    /// The decoded text of the first `max` octets of the encoded body.
    pub fn text_prefix<'a>(&self, raw: &'a [u8], max: usize) -> Cow<'a, str> {
        let body = &raw[self.body.clone()];
        match body.get(..max).filter(|_| max < body.len()) {
            // With an incomplete character at its end, UTF-8 would not be recognized.
            Some(cut) if self.encoding == TransferEncoding::Identity => {
                self.text_of(text::whole_characters(cut))
            }
            Some(cut) => {
                let octets = self.encoding.decode(cut);
                Cow::Owned(self.text_of_octets(text::whole_characters(&octets)).into_owned())
            }
            None => self.text_of(body),
        }
    }

    fn text_of<'a>(&self, body: &'a [u8]) -> Cow<'a, str> {
        match self.encoding.decode(body) {
            Cow::Borrowed(octets) => self.text_of_octets(octets),
            Cow::Owned(octets) => {
                if let Cow::Owned(text) = self.text_of_octets(&octets) {
                    return Cow::Owned(text);
                }
                // A text that is borrowed is these octets: they are not copied.
                text::body(Cow::Owned(text::utf8(octets)))
            }
        }
    }

    fn text_of_octets<'a>(&self, octets: &'a [u8]) -> Cow<'a, str> {
        let declared = self.charset.as_deref();
        let charset = match self.role {
            Role::Html => text::document_charset(octets, declared),
            Role::Text | Role::Attachment => declared.map(Cow::Borrowed),
        };
        let text = text::body(text::decoded(octets, charset.as_deref()));
        match self.flowed {
            Some(flowed) => Cow::Owned(flowed.unfold(&text)),
            None => text,
        }
    }

    /// The body of a multipart without any part, as text.
    fn whole_body(body: Range<usize>) -> Self {
        Self {
            role: Role::Text,
            media_type: "text/plain".into(),
            charset: None,
            flowed: None,
            encoding: TransferEncoding::Identity,
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

#[cfg(test)]
mod tests;
