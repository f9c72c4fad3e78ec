//! Messages as lists and streams show them: each form names what differs from the [`Summary`] that all have.

use serde::Serialize;
use tempmail_model::message::OwnerKind;
use tempmail_store::{MessageRow, Summary};
use utoipa::ToSchema;
use uuid::Uuid;

/// The summary of a message in the lists of `/api` and `/pro/api`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MessageSummary {
    id: Uuid,
    sender: String,
    from: String,
    #[serde(flatten)]
    #[schema(inline)]
    summary: Summary,
    is_read: bool,
}

impl From<&MessageRow> for MessageSummary {
    fn from(row: &MessageRow) -> Self {
        Self {
            id: row.id,
            sender: row.sender.clone(),
            from: row.from_text.clone(),
            summary: row.into(),
            is_read: row.is_read,
        }
    }
}

/// The summary of a message among everything that a tenant owns.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OwnedMessageSummary {
    id: Uuid,
    /// The exact recipient.
    address: String,
    /// Its mailbox; `null` for an address without one, whose messages are read over `/v1`.
    account_id: Option<Uuid>,
    sender: String,
    from: String,
    #[serde(flatten)]
    #[schema(inline)]
    summary: Summary,
    is_read: bool,
}

impl From<&MessageRow> for OwnedMessageSummary {
    fn from(row: &MessageRow) -> Self {
        Self {
            id: row.id,
            address: row.address.clone(),
            account_id: (row.owner_kind == OwnerKind::Mailbox).then_some(row.owner),
            sender: row.sender.clone(),
            from: row.from_text.clone(),
            summary: row.into(),
            is_read: row.is_read,
        }
    }
}

/// The summary of a message in the long-polls and streams of `/v1`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EmailSummary {
    id: Uuid,
    address: String,
    from_email: String,
    #[serde(flatten)]
    #[schema(inline)]
    summary: Summary,
}

impl From<&MessageRow> for EmailSummary {
    fn from(row: &MessageRow) -> Self {
        Self {
            id: row.id,
            address: row.address.clone(),
            from_email: row.from_email.clone(),
            summary: row.into(),
        }
    }
}

/// A page of a mailbox's messages, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MessageList {
    messages: Vec<MessageSummary>,
    page: i64,
}

impl MessageList {
    /// Page `page`, from 1, of these messages.
    pub(crate) fn new(rows: &[MessageRow], page: i64) -> Self {
        Self { messages: rows.iter().map(Into::into).collect(), page }
    }
}

/// A page of everything that a tenant owns, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OwnedMessageList {
    messages: Vec<OwnedMessageSummary>,
    page: i64,
}

impl OwnedMessageList {
    /// Page `page`, from 1, of these messages.
    pub(crate) fn new(rows: &[MessageRow], page: i64) -> Self {
        Self { messages: rows.iter().map(Into::into).collect(), page }
    }
}
