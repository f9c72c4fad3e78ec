//! Messages: in lists, and whole.

use std::io;

use serde::Serialize;
use tempmail_mime::{Address, Structure, decode_header, header_fields};
use tempmail_model::timestamp::timestamp;
use tempmail_store::MessageRow;
use uuid::Uuid;

use super::content::Content;
use crate::compat::search::blind_recipients;
use crate::message::{Digest, Document, MessageTexts, PieceWriter};

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
