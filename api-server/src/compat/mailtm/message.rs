//! Messages: in lists, whole, and as their source.

use std::borrow::Cow;
use std::io;

use serde::Serialize;
use serde_json::{Value, json};
use tempmail_mime::{Address, Attachment, Structure};
use tempmail_model::timestamp::timestamp;
use tempmail_store::MessageRow;
use uuid::Uuid;

use super::representation::Representation;
use crate::compat::lossy_text;
use crate::compat::search::blind_recipients;
use crate::message::{Digest, MessageTexts, PieceWriter};

/// What ids of attachments begin with.
const ATTACHMENT: &str = "ATTACH";

/// An address.
#[derive(Debug, Serialize)]
struct AddressElement<'a> {
    address: &'a str,
    name: &'a str,
}

/// A whole message.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
    /// What lists show, too.
    #[serde(flatten)]
    summary: Value,
    cc: Vec<AddressElement<'a>>,
    bcc: Vec<AddressElement<'a>>,
    flagged: bool,
    verifications: [&'static str; 0],
    retention: bool,
    retention_date: String,
    text: &'a str,
    html: Vec<&'a str>,
    attachments: Vec<AttachmentElement<'a>>,
}

/// An attachment, without its data.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AttachmentElement<'a> {
    id: String,
    filename: String,
    content_type: &'a str,
    disposition: &'static str,
    transfer_encoding: &'static str,
    related: bool,
    size: usize,
    download_url: String,
}

/// The source of a message.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Source<'a> {
    #[serde(flatten)]
    about: Value,
    data: Cow<'a, str>,
}

impl<'a> AddressElement<'a> {
    fn all(addresses: &'a [Address]) -> Vec<Self> {
        addresses.iter().map(|address| Self { address: &address.email, name: &address.name }).collect()
    }
}

/// A message as lists show it.
pub(super) fn summary(row: &MessageRow, digest: &Digest, mailbox: Uuid) -> Value {
    let from = digest.from.as_ref();
    // Clients expect a sender.
    let from = AddressElement {
        address: from.map_or(row.sender.as_str(), |from| &from.email),
        name: from.map_or("", |from| &from.name),
    };
    let mut to = AddressElement::all(&digest.to);
    if to.is_empty() {
        to.push(AddressElement { address: &row.address, name: "" });
    }
    let created_at = timestamp(row.created_at());
    json!({
        "@id": format!("/messages/{}", row.id),
        "@type": "Message",
        "id": row.id,
        "accountId": format!("/accounts/{mailbox}"),
        "msgid": format!("<{}>", digest.message_id),
        "from": from,
        "to": to,
        "subject": row.subject,
        "intro": row.preview,
        "seen": row.is_read,
        "isDeleted": false,
        "hasAttachments": digest.attachments + digest.inline > 0,
        "size": row.size,
        "downloadUrl": format!("/messages/{}/download", row.id),
        "sourceUrl": format!("/sources/{}", row.id),
        "createdAt": created_at,
        "updatedAt": created_at,
    })
}

/// Writes a whole message as JSON, within the memory that `json` holds.
///
/// # Errors
/// There is not enough memory.
pub(super) fn write_message(
    raw: &[u8],
    row: &MessageRow,
    form: Representation,
    json: &mut PieceWriter,
) -> io::Result<()> {
    let digest = Digest::of_message(raw);
    let structure = Structure::parse(raw);
    let texts = MessageTexts::of(&structure, raw);
    json.set_aside(texts.memory())?;
    let attachments = structure.attachments(raw);
    let blind = blind_recipients(row, &digest);
    let message = Message {
        summary: form.fields("Message", summary(row, &digest, row.inbox)),
        cc: AddressElement::all(&digest.cc),
        bcc: AddressElement::all(&blind),
        flagged: false,
        verifications: [],
        retention: true,
        retention_date: timestamp(row.expires_at()),
        text: &texts.text,
        html: Some(texts.html.as_str()).filter(|html| !html.is_empty()).into_iter().collect(),
        attachments: attachments.iter().map(|attachment| AttachmentElement::of(row.id, attachment)).collect(),
    };
    serde_json::to_writer(json, &message)?;
    Ok(())
}

/// Writes the source of a message as JSON, within the memory that `json` holds.
///
/// # Errors
/// There is not enough memory.
pub(super) fn write_source(
    raw: &[u8],
    row: &MessageRow,
    form: Representation,
    json: &mut PieceWriter,
) -> io::Result<()> {
    let about = json!({
        "@id": format!("/sources/{}", row.id),
        "@type": "Source",
        "id": row.id,
        "downloadUrl": format!("/messages/{}/download", row.id),
    });
    let data = lossy_text(raw, json)?;
    serde_json::to_writer(json, &Source { about: form.fields("Source", about), data })?;
    Ok(())
}

impl<'a> AttachmentElement<'a> {
    fn of(message: Uuid, attachment: &'a Attachment) -> Self {
        let leaf = &attachment.leaf;
        let id = format!("{ATTACHMENT}{:06}", attachment.index + 1);
        Self {
            filename: attachment.download_name(),
            content_type: &leaf.media_type,
            disposition: if leaf.inline { "inline" } else { "attachment" },
            transfer_encoding: leaf.encoding.as_str(),
            related: leaf.inline,
            size: attachment.size,
            download_url: format!("/messages/{message}/attachment/{id}"),
            id,
        }
    }
}

/// The index of the attachment with this id.
pub(super) fn attachment_index(id: &str) -> Option<usize> {
    id.strip_prefix(ATTACHMENT)?.parse::<usize>().ok()?.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_ids_of_attachments() {
        assert_eq!(attachment_index("ATTACH000001"), Some(0));
        for wrong in ["ATTACH000000", "ATTACH", "000001", "ATTACH-1", "attach000001"] {
            assert_eq!(attachment_index(wrong), None, "{wrong}");
        }
    }
}
