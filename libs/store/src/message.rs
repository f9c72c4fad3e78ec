//! Messages of a mailbox and their raw data.

use std::sync::LazyLock;

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tempmail_model::id::id_time;
use tempmail_model::limits::PAGE_SIZE;
use tempmail_model::message::OwnerKind;
use tempmail_model::retention::RetentionClass;
use uuid::Uuid;

use crate::page::rows_before;
use crate::{Store, StoreError};

/// What a recipient has of a mail: all but its raw data.
#[derive(Debug, Clone)]
pub struct MessageRow {
    /// Its id, which tells when it was accepted.
    pub id: Uuid,
    /// Its place in the one stream.
    pub seq: i64,
    /// How long it is kept.
    pub class: RetentionClass,
    /// The mail whose raw data it reads.
    pub mail: Uuid,
    /// Whose it is.
    pub owner_kind: OwnerKind,
    /// Mailbox, custom domain, platform tenant, or nil for a shared inbox.
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

impl MessageRow {
    /// When it was accepted.
    pub fn created_at(&self) -> Timestamp {
        id_time(self.id).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// From when on it is not served.
    pub fn expires_at(&self) -> Timestamp {
        self.class.expires_at(self.created_at())
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

/// The class of a message.
pub(crate) fn class_of(hours: i16, id: Uuid) -> Result<RetentionClass, StoreError> {
    RetentionClass::try_from(hours).map_err(|_unknown| StoreError::Inconsistent {
        table: "message",
        column: "class",
        id,
    })
}

/// Octets of a part of a mail's compressed raw data; the last part may be shorter.
pub const RAW_PART_BYTES: i64 = 256 << 10;

/// The beginning of a mail's raw data, and what must be known of it to read the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawHead {
    /// Offset in the uncompressed data where the `for` clause goes.
    pub for_clause_offset: i32,
    /// Octets of the compressed data.
    pub stored_len: i64,
    /// Its first octets, compressed: as many as were asked for, or all.
    pub bytes: Vec<u8>,
}

/// A message, and where its raw data begins.
#[derive(Debug, Clone)]
pub struct StoredMessage {
    /// The message.
    pub row: MessageRow,
    /// `None` where the raw data is gone.
    pub raw: Option<RawHead>,
}

impl StoredMessage {
    pub(crate) fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        let raw = match row.try_get("for_clause_offset")? {
            None => None,
            Some(for_clause_offset) => Some(RawHead {
                for_clause_offset,
                stored_len: row.try_get("stored_len")?,
                bytes: row.try_get("octets")?,
            }),
        };
        Ok(Self { row: MessageRow::from_row(row)?, raw })
    }
}

/// `arm` for each class, all of them as one `UNION ALL`: each arm names its class, so that it is pruned to the
/// partitions of that class.
pub(crate) fn each_class(arm: impl Fn(i16) -> String) -> String {
    RetentionClass::ALL.map(|class| arm(class.hours())).join(" UNION ALL ")
}

/// The visible message of the id `$1`, whatever its class, as `m`: one at most.
pub(crate) fn message_by_id() -> String {
    let arms = each_class(|class| format!("SELECT * FROM visible_message WHERE class = {class} AND id = $1"));
    format!("(SELECT * FROM ({arms}) m LIMIT 1) m")
}

/// The raw data of `message m`, `len` octets of it, as `r`. `lowest` and `highest` as [`mails_of_moment`]
/// gives them, so that each arm is pruned to one partition.
pub(crate) fn raw_start(lowest: &str, highest: &str, len: &str) -> String {
    let arms = each_class(|class| {
        format!(
            "SELECT for_clause_offset, octets::bigint AS stored_len, substring(data FROM 1 FOR {len}) AS octets
             FROM raw WHERE m.class = {class} AND class = {class} AND mail = m.mail AND part = 0
               AND mail >= {lowest} AND mail <= {highest}"
        )
    });
    format!("({arms}) r")
}

/// The lowest and the highest id of a message's millisecond: a mail and its messages are
/// numbered at one moment.
pub(crate) fn mails_of_moment(message: Uuid) -> [Uuid; 2] {
    const WITHIN: u128 = (1 << 80) - 1;
    [message.as_u128() & !WITHIN, message.as_u128() | WITHIN].map(Uuid::from_u128)
}

const LIST_MAILBOX_MESSAGES: &str = "/* list_mailbox_messages */
    SELECT m.* FROM mailbox b
    LEFT JOIN tenant t ON t.id = b.tenant
    CROSS JOIN LATERAL unnest(coalesce(t.classes, ARRAY(SELECT class FROM free_class))) AS c (class)
    CROSS JOIN LATERAL inbox_before(c.class, $2, b.id, b.id, '', 9223372036854775807, $3 + $4) m
    WHERE b.id = $1
    ORDER BY m.seq DESC OFFSET $3 LIMIT $4";

static FIND_MAILBOX_MESSAGE: LazyLock<String> = LazyLock::new(|| {
    let (message, raw) = (message_by_id(), raw_start("$4", "$5", "$6"));
    format!(
        "/* find_mailbox_message */
        SELECT m.*, r.* FROM {message} LEFT JOIN LATERAL {raw} ON true
        WHERE m.owner = $2 AND m.inbox = $2 AND m.id >= time_id($3 - make_interval(hours => m.class))"
    )
});

static MARK_MESSAGE_READ: LazyLock<String> = LazyLock::new(|| {
    let message = message_by_id();
    format!(
        "/* mark_message_read */
        WITH found AS MATERIALIZED (
            SELECT m.class, m.id, m.is_read FROM {message}
            WHERE m.owner = $2 AND m.inbox = $2 AND m.id >= time_id($3 - make_interval(hours => m.class))
        ), marked AS (
            UPDATE message m SET is_read = true FROM found f
            WHERE m.class = f.class AND m.id = f.id AND NOT f.is_read
        )
        SELECT EXISTS (SELECT FROM found)"
    )
});

impl Store {
    /// A page (from 1, 30 messages) of a mailbox's unexpired messages, newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_mailbox_messages(
        &self,
        mailbox: Uuid,
        page: i64,
        now: Timestamp,
    ) -> Result<Vec<MessageRow>, StoreError> {
        let rows = sqlx::query(LIST_MAILBOX_MESSAGES)
            .bind(mailbox)
            .bind(now.to_sqlx())
            .bind(rows_before(page))
            .bind(PAGE_SIZE)
            .fetch_all(self.pool())
            .await?;
        rows.iter().map(MessageRow::from_row).collect()
    }

    /// An unexpired message of a mailbox, with up to `raw_len` octets of its raw data.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_mailbox_message(
        &self,
        mailbox: Uuid,
        id: Uuid,
        now: Timestamp,
        raw_len: i32,
    ) -> Result<Option<StoredMessage>, StoreError> {
        let [lowest_mail, highest_mail] = mails_of_moment(id);
        let row = sqlx::query(FIND_MAILBOX_MESSAGE.as_str())
            .bind(id)
            .bind(mailbox)
            .bind(now.to_sqlx())
            .bind(lowest_mail)
            .bind(highest_mail)
            .bind(raw_len)
            .fetch_optional(self.pool())
            .await?;
        row.as_ref().map(StoredMessage::from_row).transpose()
    }

    /// Marks a message of a mailbox as read; `false` where there is none.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn mark_message_read(
        &self,
        mailbox: Uuid,
        id: Uuid,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        Ok(sqlx::query_scalar(MARK_MESSAGE_READ.as_str())
            .bind(id)
            .bind(mailbox)
            .bind(now.to_sqlx())
            .fetch_one(self.pool())
            .await?)
    }

    /// Deletes a message; `false` where it is gone already.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn delete_message(&self, row: &MessageRow) -> Result<bool, StoreError> {
        Ok(sqlx::query_scalar("/* delete_message */ SELECT delete_message($1, $2, $3)")
            .bind(row.class.hours())
            .bind(row.id)
            .bind(row.inbox)
            .fetch_one(self.pool())
            .await?)
    }

    /// Octets of a message's compressed raw data from `offset` (from 0) on, up to `len` and up to the end of
    /// the part that they are in; `None` where it is gone. Cheap at any offset: the column is stored in
    /// plain chunks.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn raw_chunk(
        &self,
        row: &MessageRow,
        offset: i64,
        len: i32,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(sqlx::query_scalar(
            "/* raw_chunk */ SELECT substring(data FROM $4::integer FOR $5) FROM raw
            WHERE class = $1 AND mail = $2 AND part = $3::smallint",
        )
        .bind(row.class.hours())
        .bind(row.mail)
        .bind(offset / RAW_PART_BYTES)
        .bind(offset % RAW_PART_BYTES + 1)
        .bind(len)
        .fetch_optional(self.pool())
        .await?)
    }
}
