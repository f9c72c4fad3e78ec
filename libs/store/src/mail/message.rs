//! A message as it is stored for one recipient, and pages of lists of them.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use serde::Serialize;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tempmail_model::id::id_time;
use tempmail_model::limits::PAGE_SIZE;
use tempmail_model::message::OwnerKind;
use tempmail_model::retention::RetentionClass;
use tempmail_model::timestamp::timestamp;
use utoipa::ToSchema;
use uuid::Uuid;

use super::partition::{class_of, each_class};
use crate::error::StoreError;
use crate::pool::Store;
use crate::row::{first_column, rows_before};

/// A message: the mail of one recipient without its raw data. The default is one of a shared inbox, with empty texts.
#[derive(Debug, Clone, Default)]
pub struct MessageRow {
    /// Its id, with the time at which it was accepted.
    pub id: Uuid,
    /// Its position in the stream.
    pub seq: i64,
    /// How long it is kept.
    pub class: RetentionClass,
    /// Id of the mail, which has the raw data.
    pub mail: Uuid,
    /// The kind of its owner.
    pub owner_kind: OwnerKind,
    /// Mailbox, custom domain, tenant (`platform`, or that of a sink), or nil for a shared inbox.
    pub owner: Uuid,
    /// Mailbox, or the key of the exact address.
    pub inbox: Uuid,
    /// Tenant of its owner when it was stored.
    pub tenant: Option<Uuid>,
    /// The exact recipient.
    pub address: String,
    /// Reverse-path, "" for the null one.
    pub sender: String,
    /// From header as text.
    pub from_text: String,
    /// First address of the From header, "" without one.
    pub from_email: String,
    /// Subject.
    pub subject: String,
    /// First characters of the text.
    pub preview: String,
    /// Octets that its recipient downloads.
    pub size: i32,
    /// Whether the mail had no other recipient.
    pub single_recipient: bool,
    /// Whether its recipient marked it as read.
    pub is_read: bool,
}

/// What every surface says of a message in JSON. Each adds how it names the message, its owner and its sender.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Summary {
    subject: String,
    preview_text: String,
    #[schema(minimum = 0)]
    size: i32,
    created_at: String,
}

impl From<&MessageRow> for Summary {
    fn from(row: &MessageRow) -> Self {
        Self {
            subject: row.subject.clone(),
            preview_text: row.preview.clone(),
            size: row.size,
            created_at: timestamp(row.created_at()),
        }
    }
}

impl MessageRow {
    /// When it was accepted.
    pub fn created_at(&self) -> Timestamp {
        id_time(self.id).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// When it expires.
    pub fn expires_at(&self) -> Timestamp {
        self.class.expires_at(self.created_at())
    }

    /// The messages of a left join: none where the one row has no message.
    pub(super) fn from_left_join(rows: &[PgRow]) -> Result<Vec<Self>, StoreError> {
        match rows {
            [only] if only.try_get::<Option<Uuid>, _>("id")?.is_none() => Ok(Vec::new()),
            rows => rows.iter().map(Self::from_row).collect(),
        }
    }

    pub(crate) fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        let id = row.try_get("id")?;
        let impossible = |column| StoreError::Inconsistent { table: "message", column, id };
        Ok(Self {
            id,
            seq: row.try_get("seq")?,
            class: class_of(row.try_get("class")?, id)?,
            mail: row.try_get("mail")?,
            owner_kind: OwnerKind::from_code(row.try_get("owner_kind")?)
                .ok_or_else(|| impossible("owner_kind"))?,
            owner: row.try_get("owner")?,
            inbox: row.try_get("inbox")?,
            tenant: row.try_get("tenant")?,
            address: row.try_get("address")?,
            sender: row.try_get("sender")?,
            from_text: row.try_get("from_text")?,
            from_email: row.try_get("from_email")?,
            subject: row.try_get("subject")?,
            preview: row.try_get("preview")?,
            size: row.try_get("size")?,
            single_recipient: row.try_get("single_recipient")?,
            is_read: row.try_get("is_read")?,
        })
    }
}

/// SQL for the columns of a message `m` that [`MessageRow`] reads. Statements name what they return: a column that a
/// later schema adds does not change the result of a prepared statement.
macro_rules! message_columns {
    () => {
        "m.id, m.seq, m.class, m.mail, m.owner_kind, m.owner, m.inbox, m.tenant, m.address, m.sender, m.from_text,
         m.from_email, m.subject, m.preview, m.size, m.single_recipient, m.is_read"
    };
}
pub(crate) use message_columns;

/// SQL for the visible message of the id `$1`, of any class, as `m`.
pub(crate) fn message_by_id() -> String {
    of_any_class("visible_message")
}

/// SQL for the message of the id `$1`, of any class, as `m`, by one of the views.
pub(super) fn of_any_class(view: &str) -> String {
    let columns = message_columns!();
    let arms =
        each_class(|class| format!("SELECT {columns} FROM {view} m WHERE m.class = {class} AND m.id = $1"));
    format!("(SELECT * FROM ({arms}) m LIMIT 1) m")
}

/// Messages that one statement skips. It takes a fraction of a millisecond for them: a longer one would keep Postgres on a
/// core, and what other requests wait for behind it.
const SKIPPED_MAX: i64 = 500;

/// The statements of a list: of the messages of an owner (`$1`) that are unexpired now (`$2`), those before a position
/// (`$3`), newest first, `$4` of them.
pub(super) struct MessageList {
    /// The position of the last of them; no row where there are fewer.
    pub(super) skip: &'static str,
    /// Their rows.
    pub(super) read: &'static str,
}

impl Store {
    /// A page (from 1) of a list, of the messages before a position.
    pub(super) async fn message_page(
        &self,
        list: &MessageList,
        owner: Uuid,
        before: i64,
        page: i64,
        now: Timestamp,
    ) -> Result<Vec<MessageRow>, StoreError> {
        let (mut before, mut skipped) = (before, rows_before(page, PAGE_SIZE));
        while skipped > 0 {
            let step = skipped.min(SKIPPED_MAX);
            let statement = sqlx::query(list.skip).bind(owner).bind(now.to_sqlx()).bind(before).bind(step);
            match self.fetch_optional(statement, first_column).await? {
                Some(last) => before = last,
                None => return Ok(Vec::new()),
            }
            skipped -= step;
        }
        let statement = sqlx::query(list.read).bind(owner).bind(now.to_sqlx()).bind(before).bind(PAGE_SIZE);
        self.fetch_all(statement, MessageRow::from_row).await
    }
}
