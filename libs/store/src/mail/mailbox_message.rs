//! Messages of a mailbox, as its owner lists, reads and deletes them.

use std::sync::LazyLock;

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use uuid::Uuid;

use super::message::{MessageList, MessageRow, message_by_id, message_columns};
use super::raw::{RAW_COLUMNS, StoredMessage, mails_of_moment, raw_start};
use crate::error::StoreError;
use crate::pool::Store;

/// The classes of a mailbox `$1`.
macro_rules! mailbox_classes {
    () => {
        "SELECT b.id AS mailbox, c.class FROM mailbox b
        LEFT JOIN tenant t ON t.id = b.tenant
        CROSS JOIN LATERAL unnest(coalesce(t.classes, ARRAY(SELECT class FROM free_class))) AS c (class)
        WHERE b.id = $1"
    };
}

const READ_MAILBOX_MESSAGES: &str = concat!(
    "/* list_mailbox_messages */ SELECT ",
    message_columns!(),
    " FROM (",
    mailbox_classes!(),
    ") k
    CROSS JOIN LATERAL inbox_messages(k.class, $2, k.mailbox, k.mailbox, '', true, $3, $4) m
    ORDER BY m.seq DESC LIMIT $4"
);

const SKIP_MAILBOX_MESSAGES: &str = concat!(
    "/* skip_mailbox_messages */ SELECT p.seq FROM (",
    mailbox_classes!(),
    ") k
    CROSS JOIN LATERAL inbox_positions(k.class, $2, k.mailbox, k.mailbox, $3, $4) AS p (seq)
    ORDER BY p.seq DESC OFFSET $4 - 1 LIMIT 1"
);

const MAILBOX_MESSAGES: MessageList =
    MessageList { skip: SKIP_MAILBOX_MESSAGES, read: READ_MAILBOX_MESSAGES };

static FIND_MAILBOX_MESSAGE: LazyLock<String> = LazyLock::new(|| {
    let (columns, message, raw) = (message_columns!(), message_by_id(), raw_start("$4", "$5", "$6"));
    format!(
        "/* find_mailbox_message */
        SELECT {columns}, {RAW_COLUMNS} FROM {message} LEFT JOIN LATERAL {raw} ON true
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

const COUNT_MAILBOX_MESSAGES: &str = concat!(
    "/* count_mailbox_messages */ SELECT count(*) FROM (",
    mailbox_classes!(),
    ") k
    CROSS JOIN LATERAL inbox_positions(k.class, $2, k.mailbox, k.mailbox, 9223372036854775807, $3)"
);

const MARK_MESSAGES: &str = "/* mark_messages */
    UPDATE message m SET is_read = $3 FROM unnest($1::smallint[], $2::uuid[]) AS r (class, id)
    WHERE m.class = r.class AND m.id = r.id AND m.is_read <> $3";

impl Store {
    /// A page (from 1 to [`PAGES_MAX`](tempmail_model::limits::PAGES_MAX), 30 messages) of a mailbox's unexpired messages
    /// before a position of the stream (`i64::MAX` for all), newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_mailbox_messages(
        &self,
        mailbox: Uuid,
        before: i64,
        page: i64,
        now: Timestamp,
    ) -> Result<Vec<MessageRow>, StoreError> {
        self.message_page(&MAILBOX_MESSAGES, mailbox, before, page, now).await
    }

    /// An unexpired message of a mailbox, with up to `raw_len` bytes of its raw data.
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
        self.fetch_optional(
            sqlx::query(FIND_MAILBOX_MESSAGE.as_str())
                .bind(id)
                .bind(mailbox)
                .bind(now.to_sqlx())
                .bind(lowest_mail)
                .bind(highest_mail)
                .bind(raw_len),
            StoredMessage::from_row,
        )
        .await
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
        self.fetch_value(sqlx::query(MARK_MESSAGE_READ.as_str()).bind(id).bind(mailbox).bind(now.to_sqlx()))
            .await
    }

    /// Counts the unexpired messages of a mailbox, up to `most` of each retention.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn count_mailbox_messages(
        &self,
        mailbox: Uuid,
        most: i64,
        now: Timestamp,
    ) -> Result<i64, StoreError> {
        self.fetch_value(sqlx::query(COUNT_MAILBOX_MESSAGES).bind(mailbox).bind(now.to_sqlx()).bind(most))
            .await
    }

    /// Marks messages as read, or as unread. Those that are deleted are passed over.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn mark_messages(&self, rows: &[MessageRow], is_read: bool) -> Result<(), StoreError> {
        self.execute(
            sqlx::query(MARK_MESSAGES)
                .bind(rows.iter().map(|row| row.class.hours()).collect::<Vec<_>>())
                .bind(rows.iter().map(|row| row.id).collect::<Vec<_>>())
                .bind(is_read),
        )
        .await
    }

    /// Deletes a message; `false` where it is deleted already.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn delete_message(&self, row: &MessageRow) -> Result<bool, StoreError> {
        let statement = sqlx::query("/* delete_message */ SELECT delete_message($1, $2, $3)");
        let deleted =
            self.fetch_value(statement.bind(row.class.hours()).bind(row.id).bind(row.inbox)).await?;
        if deleted {
            self.flush().await?;
        }
        Ok(deleted)
    }
}
