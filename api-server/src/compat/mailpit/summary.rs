//! Messages in lists.

use serde::Serialize;
use tempmail_mime::Address;
use tempmail_model::timestamp::timestamp;
use tempmail_store::MessageRow;
use uuid::Uuid;

use crate::compat::search::blind_recipients;
use crate::message::Digest;

/// An address.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct AddressElement {
    name: String,
    address: String,
}

impl From<&Address> for AddressElement {
    fn from(address: &Address) -> Self {
        Self { name: address.name.clone(), address: address.email.clone() }
    }
}

pub(super) fn elements(addresses: &[Address]) -> Vec<AddressElement> {
    addresses.iter().map(Into::into).collect()
}

/// A message in a list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Summary {
    #[serde(rename = "ID")]
    id: Uuid,
    #[serde(rename = "MessageID")]
    message_id: String,
    read: bool,
    from: Option<AddressElement>,
    to: Vec<AddressElement>,
    cc: Vec<AddressElement>,
    bcc: Vec<AddressElement>,
    reply_to: Vec<AddressElement>,
    subject: String,
    created: String,
    username: &'static str,
    tags: [&'static str; 0],
    size: i32,
    attachments: usize,
    snippet: String,
}

impl Summary {
    pub(super) fn new(row: MessageRow, digest: &Digest) -> Self {
        Self {
            id: row.id,
            message_id: digest.message_id.clone(),
            read: row.is_read,
            from: digest.from.as_ref().map(Into::into),
            to: elements(&digest.to),
            cc: elements(&digest.cc),
            bcc: elements(&blind_recipients(&row, digest)),
            reply_to: elements(&digest.reply_to),
            created: timestamp(row.created_at()),
            subject: row.subject,
            username: "",
            tags: [],
            size: row.size,
            attachments: digest.attachments,
            snippet: row.preview,
        }
    }
}

/// A page of a list.
#[derive(Debug, Serialize)]
pub(super) struct SummaryList {
    pub(super) total: i64,
    pub(super) unread: i64,
    /// As `messages_count`, for old clients.
    pub(super) count: usize,
    pub(super) messages_count: usize,
    pub(super) messages_unread: usize,
    pub(super) start: usize,
    pub(super) tags: [&'static str; 0],
    pub(super) messages: Vec<Summary>,
}
