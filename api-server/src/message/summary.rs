//! Messages as lists show them.

use serde::Serialize;
use tempmail_model::message::OwnerKind;
use tempmail_model::timestamp::timestamp;
use tempmail_store::MessageRow;
use utoipa::ToSchema;
use uuid::Uuid;

/// The summary of a message in the lists of `/api` and `/pro/api`.
#[derive(Debug, Serialize, ToSchema)]
struct MessageSummary {
    id: Uuid,
    sender: String,
    from: String,
    subject: String,
    preview_text: String,
    #[schema(minimum = 0)]
    size: i32,
    created_at: String,
    is_read: bool,
}

impl From<MessageRow> for MessageSummary {
    fn from(row: MessageRow) -> Self {
        Self {
            id: row.id,
            created_at: timestamp(row.created_at()),
            sender: row.sender,
            from: row.from_text,
            subject: row.subject,
            preview_text: row.preview,
            size: row.size,
            is_read: row.is_read,
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
    pub(crate) fn new(rows: Vec<MessageRow>, page: i64) -> Self {
        Self { messages: rows.into_iter().map(Into::into).collect(), page }
    }
}

/// The summary of a message among everything that a tenant owns.
#[derive(Debug, Serialize, ToSchema)]
struct OwnedMessageSummary {
    id: Uuid,
    /// The exact recipient.
    address: String,
    /// Its mailbox; `null` for an address without one, whose messages are read over `/v1`.
    account_id: Option<Uuid>,
    sender: String,
    from: String,
    subject: String,
    preview_text: String,
    #[schema(minimum = 0)]
    size: i32,
    created_at: String,
    is_read: bool,
}

impl From<MessageRow> for OwnedMessageSummary {
    fn from(row: MessageRow) -> Self {
        Self {
            id: row.id,
            created_at: timestamp(row.created_at()),
            account_id: (row.owner_kind == OwnerKind::Mailbox).then_some(row.owner),
            address: row.address,
            sender: row.sender,
            from: row.from_text,
            subject: row.subject,
            preview_text: row.preview,
            size: row.size,
            is_read: row.is_read,
        }
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
    pub(crate) fn new(rows: Vec<MessageRow>, page: i64) -> Self {
        Self { messages: rows.into_iter().map(Into::into).collect(), page }
    }
}

/// The summary of a message in the long-polls and streams of `/v1`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EmailSummary {
    id: Uuid,
    address: String,
    from_email: String,
    subject: String,
    preview_text: String,
    #[schema(minimum = 0)]
    size: i32,
    created_at: String,
}

impl From<&MessageRow> for EmailSummary {
    fn from(row: &MessageRow) -> Self {
        Self {
            id: row.id,
            created_at: timestamp(row.created_at()),
            address: row.address.clone(),
            from_email: row.from_email.clone(),
            subject: row.subject.clone(),
            preview_text: row.preview.clone(),
            size: row.size,
        }
    }
}
