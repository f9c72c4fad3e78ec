//! Messages: in lists, and whole, with the links and codes in their bodies.

use std::io;

use serde::Serialize;
use tempmail_extract::{Source, extract};
use tempmail_mime::{Address, Structure, decode_header, header_fields};
use tempmail_model::timestamp::timestamp;
use tempmail_store::MessageRow;
use uuid::Uuid;

use crate::compat::search::blind_recipients;
use crate::message::{Digest, Document, DocumentLink, MessageTexts, PieceWriter};

/// The one type of messages here.
const EMAIL: &str = "Email";

/// An address.
#[derive(Debug, Serialize)]
struct AddressElement {
    name: String,
    email: String,
    phone: Option<()>,
}

/// Who sent a message to whom.
#[derive(Debug, Serialize)]
struct Addresses {
    from: Vec<AddressElement>,
    to: Vec<AddressElement>,
    cc: Vec<AddressElement>,
    bcc: Vec<AddressElement>,
}

/// A message in a list.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    id: Uuid,
    r#type: &'static str,
    server: String,
    #[serde(flatten)]
    addresses: Addresses,
    received: String,
    subject: String,
    summary: String,
    attachments: usize,
}

/// A whole message.
#[derive(Debug, Serialize)]
struct Message<'a> {
    id: Uuid,
    r#type: &'static str,
    server: &'a str,
    #[serde(flatten)]
    addresses: Addresses,
    received: String,
    subject: &'a str,
    html: Content,
    text: Content,
    attachments: Vec<AttachmentElement<'a>>,
    metadata: Metadata<'a>,
}

/// An attachment, without its data.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AttachmentElement<'a> {
    id: String,
    content_type: &'a str,
    file_name: String,
    content_id: Option<&'a str>,
    length: usize,
    url: String,
}

/// The envelope and the header fields.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    headers: Vec<HeaderField<'a>>,
    ehlo: Option<()>,
    mail_from: &'a str,
    rcpt_to: [AddressElement; 1],
}

#[derive(Debug, Serialize)]
struct HeaderField<'a> {
    field: &'a str,
    value: String,
}

impl From<&Address> for AddressElement {
    fn from(address: &Address) -> Self {
        Self { name: address.name.clone(), email: address.email.clone(), phone: None }
    }
}

impl Addresses {
    fn of(row: &MessageRow, digest: &Digest) -> Self {
        let elements = |addresses: &[Address]| addresses.iter().map(Into::into).collect();
        Self {
            from: digest.from.iter().map(Into::into).collect(),
            to: elements(&digest.to),
            cc: elements(&digest.cc),
            bcc: elements(&blind_recipients(row, digest)),
        }
    }
}

impl Summary {
    /// A message of the server with this id.
    pub(super) fn new(row: MessageRow, digest: &Digest, server: &str) -> Self {
        Self {
            id: row.id,
            r#type: EMAIL,
            server: server.to_owned(),
            addresses: Addresses::of(&row, digest),
            received: timestamp(row.created_at()),
            subject: row.subject,
            summary: row.preview,
            attachments: digest.attachments + digest.inline,
        }
    }
}

/// Writes a whole message, and the sanitized document of it, as JSON, within the memory that `json` holds.
///
/// # Errors
/// There is not enough memory.
pub(super) fn write_message(
    raw: &[u8],
    row: &MessageRow,
    document: Option<Document>,
    server: &str,
    json: &mut PieceWriter,
) -> io::Result<()> {
    let digest = Digest::of_message(raw);
    let structure = Structure::parse(raw);
    let texts = MessageTexts::of(&structure, raw);
    json.set_aside(texts.memory())?;
    let headers = header_fields(&raw[structure.header.clone()])
        .map(|field| HeaderField { field: field.name, value: decode_header(field.value) })
        .collect();
    let attachments = structure.attachments(raw);
    let message = Message {
        id: row.id,
        r#type: EMAIL,
        server,
        addresses: Addresses::of(row, &digest),
        received: timestamp(row.created_at()),
        subject: &row.subject,
        html: match document {
            Some(document) => Content::of_html(&row.subject, texts.html, document.links),
            None => Content::default(),
        },
        text: Content::of_text(&row.subject, texts.text),
        attachments: attachments
            .iter()
            .map(|attachment| {
                let id = format!("{}-{}", row.id, attachment.index);
                AttachmentElement {
                    content_type: &attachment.leaf.media_type,
                    file_name: attachment.download_name(),
                    content_id: attachment.leaf.content_id.as_deref(),
                    length: attachment.size,
                    url: format!("/api/files/attachments/{id}"),
                    id,
                }
            })
            .collect(),
        metadata: Metadata {
            headers,
            ehlo: None,
            mail_from: &row.sender,
            rcpt_to: [AddressElement { name: String::new(), email: row.address.clone(), phone: None }],
        },
    };
    serde_json::to_writer(json, &message)?;
    Ok(())
}

/// Links of a text that are listed, and bytes of one.
const LINKS_MAX: usize = 500;
const LINK_MAX: usize = 2_048;

/// A body.
#[derive(Debug, Default, Serialize)]
pub(super) struct Content {
    links: Vec<Link>,
    codes: Vec<Code>,
    pub(super) body: String,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Link {
    href: String,
    text: String,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Code {
    value: String,
}

impl Content {
    /// The text body of a message with this subject.
    pub(super) fn of_text(subject: &str, body: String) -> Self {
        let message =
            tempmail_extract::Message { subject, text: Some(&body), ..tempmail_extract::Message::default() };
        Self { links: links(&body), codes: codes(&message, Source::Text), body }
    }

    /// The HTML body of a message with this subject, with the links of its document.
    pub(super) fn of_html(subject: &str, body: String, links: Vec<DocumentLink>) -> Self {
        let message =
            tempmail_extract::Message { subject, html: Some(&body), ..tempmail_extract::Message::default() };
        let links = links.into_iter().map(|link| Link { href: link.href, text: link.text });
        Self { links: links.collect(), codes: codes(&message, Source::Html), body }
    }
}

/// The codes that stand in the body.
fn codes(message: &tempmail_extract::Message<'_>, source: Source) -> Vec<Code> {
    let body = match source {
        Source::Html => message.html,
        Source::Subject | Source::Text => message.text,
    };
    let body = body.unwrap_or_default();
    let found = extract(message).codes.into_iter();
    // One that the subject has, too, may be reported of that.
    let of_body = found.filter(|code| code.source == source || body.contains(&code.code));
    of_body.map(|code| Code { value: code.code }).collect()
}

/// The addresses of web pages in a text.
fn links(text: &str) -> Vec<Link> {
    let mut links = Vec::new();
    let mut rest = text;
    while links.len() < LINKS_MAX
        && let Some(at) = rest.find("http")
    {
        rest = &rest[at..];
        if rest.starts_with("http://") || rest.starts_with("https://") {
            let end = rest.find(|c: char| c.is_whitespace() || "<>\"".contains(c)).unwrap_or(rest.len());
            let (link, after) = rest.split_at(end);
            rest = after;
            let link = link.trim_end_matches(|c: char| ".,;:!?)]}'".contains(c));
            if link.len() <= LINK_MAX {
                links.push(Link { href: link.to_owned(), text: link.to_owned() });
            }
        } else {
            rest = &rest["http".len()..];
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_links_and_codes_of_a_text() {
        let text =
            "Your verification code is 482913.\r\nOr follow https://shop.example/v?t=1. (http://b.example)";
        let content = Content::of_text("Sign in", text.into());
        let hrefs: Vec<_> = content.links.iter().map(|link| link.href.as_str()).collect();
        assert_eq!(hrefs, ["https://shop.example/v?t=1", "http://b.example"]);
        assert_eq!(content.codes, [Code { value: "482913".into() }]);
    }

    #[test]
    fn finds_the_codes_of_html() {
        let html = "<p>Your verification code is <b>482913</b></p>";
        let content = Content::of_html("482913 is your verification code", html.into(), Vec::new());
        assert_eq!(content.codes, [Code { value: "482913".into() }]);
        assert!(Content::default().codes.is_empty() && links("http https:/x httphttp").is_empty());
    }
}
