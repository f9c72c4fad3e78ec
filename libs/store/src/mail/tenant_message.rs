//! What a tenant manages without naming an address (`/pro/api/messages`): everything that it owns.

use std::sync::LazyLock;

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use uuid::Uuid;

use super::message::{MessageList, MessageRow, message_by_id, message_columns, of_any_class};
use super::raw::{RAW_COLUMNS, StoredMessage, mails_of_moment, raw_start};
use crate::error::StoreError;
use crate::pool::Store;

const READ_TENANT_MESSAGES: &str = concat!(
    "/* list_tenant_messages */ SELECT ",
    message_columns!(),
    " FROM tenant t
    CROSS JOIN LATERAL unnest(t.classes) AS c (class)
    CROSS JOIN LATERAL tenant_messages(c.class, $2, t.id, true, $3, $4) m
    WHERE t.id = $1
    ORDER BY m.seq DESC LIMIT $4"
);

const SKIP_TENANT_MESSAGES: &str = "/* skip_tenant_messages */
    SELECT p.seq FROM tenant t
    CROSS JOIN LATERAL unnest(t.classes) AS c (class)
    CROSS JOIN LATERAL tenant_positions(c.class, $2, t.id, $3, $4) p
    WHERE t.id = $1
    ORDER BY p.seq DESC OFFSET $4 - 1 LIMIT 1";

const TENANT_MESSAGES: MessageList = MessageList { skip: SKIP_TENANT_MESSAGES, read: READ_TENANT_MESSAGES };

static FIND_OWNED_MESSAGE: LazyLock<String> = LazyLock::new(|| {
    let (columns, message) = (message_columns!(), of_any_class("served_message"));
    format!(
        "/* find_owned_message */
        SELECT {columns} FROM {message}
        WHERE m.tenant = $2 AND m.id >= time_id($3 - make_interval(hours => m.class))"
    )
});

// Raw data is read after the access check, so that a refusal takes as long as an unknown id.
static FIND_TENANT_MAILBOX_MESSAGE: LazyLock<String> = LazyLock::new(|| {
    let (columns, message, raw) = (message_columns!(), message_by_id(), raw_start("$4", "$5", "$6"));
    format!(
        "/* find_tenant_mailbox_message */
        SELECT {columns}, {RAW_COLUMNS} FROM (
            SELECT m.* FROM {message}
            LEFT JOIN mailbox b ON m.owner_kind = 1 AND b.id = m.owner AND b.tenant = $2 AND b.removed_at IS NULL
            LEFT JOIN domain d ON d.id = b.domain AND d.serves
            WHERE (d.id IS NOT NULL OR (m.owner_kind = 4 AND m.owner = $2)) AND m.id >= time_id($3 - make_interval(hours => m.class))
            OFFSET 0
        ) m LEFT JOIN LATERAL {raw} ON true"
    )
});

/// Messages among which [`Store::list_tenant_inboxes`] looks.
const INBOX_SCAN: i64 = 1_000;

const LIST_TENANT_INBOXES: &str = "/* list_tenant_inboxes */
    SELECT m.inbox, m.owner, max(m.seq) AS newest FROM tenant t
    CROSS JOIN LATERAL unnest(t.classes) AS c (class)
    CROSS JOIN LATERAL tenant_messages(c.class, $2, t.id, true, $3, $4) m
    WHERE t.id = $1
    GROUP BY m.inbox, m.owner";

const COUNT_TENANT_MESSAGES: &str = "/* count_tenant_messages */
    SELECT count(*) AS total, count(*) FILTER (WHERE NOT p.is_read) AS unread FROM tenant t
    CROSS JOIN LATERAL unnest(t.classes) AS c (class)
    CROSS JOIN LATERAL (
        SELECT p.is_read FROM tenant_positions(c.class, $2, t.id, 9223372036854775807, $3) p
        ORDER BY p.seq DESC LIMIT $3
    ) p
    WHERE t.id = $1";

/// How many messages there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageCount {
    /// All of them.
    pub total: i64,
    /// Those that are not read.
    pub unread: i64,
}

/// An inbox of a tenant that has mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TenantInbox {
    /// Mailbox, or the key of the exact address.
    pub inbox: Uuid,
    /// Mailbox or custom domain.
    pub owner: Uuid,
    /// The position of the newest of its messages that were found.
    pub newest: i64,
}

impl Store {
    /// A page (from 1 to [`PAGES_MAX`](tempmail_model::limits::PAGES_MAX), 30 messages) of the unexpired messages that
    /// a tenant owns before a position of the stream (`i64::MAX` for all), newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_tenant_messages(
        &self,
        tenant: Uuid,
        before: i64,
        page: i64,
        now: Timestamp,
    ) -> Result<Vec<MessageRow>, StoreError> {
        self.message_page(&TENANT_MESSAGES, tenant, before, page, now).await
    }

    /// Counts the unexpired messages that a tenant owns, up to `most` of each retention.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn count_tenant_messages(
        &self,
        tenant: Uuid,
        most: i64,
        now: Timestamp,
    ) -> Result<MessageCount, StoreError> {
        let statement = sqlx::query(COUNT_TENANT_MESSAGES).bind(tenant).bind(now.to_sqlx()).bind(most);
        self.fetch_one(statement, |row| {
            Ok(MessageCount { total: row.try_get("total")?, unread: row.try_get("unread")? })
        })
        .await
    }

    /// An unexpired message that a tenant owns.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_owned_message(
        &self,
        tenant: Uuid,
        id: Uuid,
        now: Timestamp,
    ) -> Result<Option<MessageRow>, StoreError> {
        let statement = sqlx::query(FIND_OWNED_MESSAGE.as_str()).bind(id).bind(tenant).bind(now.to_sqlx());
        self.fetch_optional(statement, MessageRow::from_row).await
    }

    /// An unexpired message of a mailbox of a tenant, or of its sink, with up to `raw_len` bytes of its raw data.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_tenant_mailbox_message(
        &self,
        tenant: Uuid,
        id: Uuid,
        now: Timestamp,
        raw_len: i32,
    ) -> Result<Option<StoredMessage>, StoreError> {
        let [lowest_mail, highest_mail] = mails_of_moment(id);
        self.fetch_optional(
            sqlx::query(FIND_TENANT_MAILBOX_MESSAGE.as_str())
                .bind(id)
                .bind(tenant)
                .bind(now.to_sqlx())
                .bind(lowest_mail)
                .bind(highest_mail)
                .bind(raw_len),
            StoredMessage::from_row,
        )
        .await
    }

    /// The inboxes of the newest 1,000 messages of each retention that a tenant owns before a position of the stream.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_tenant_inboxes(
        &self,
        tenant: Uuid,
        before: i64,
        now: Timestamp,
    ) -> Result<Vec<TenantInbox>, StoreError> {
        let statement = sqlx::query(LIST_TENANT_INBOXES);
        self.fetch_all(statement.bind(tenant).bind(now.to_sqlx()).bind(before).bind(INBOX_SCAN), |row| {
            Ok(TenantInbox {
                inbox: row.try_get("inbox")?,
                owner: row.try_get("owner")?,
                newest: row.try_get("newest")?,
            })
        })
        .await
    }

    /// Deletes every message that an inbox has now: hidden at once, deleted by the worker.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn clear_tenant_inbox(&self, inbox: &TenantInbox, now: Timestamp) -> Result<(), StoreError> {
        let statement = sqlx::query("/* clear_tenant_inbox */ SELECT clear_inbox($1, $2, '', $3)");
        self.execute(statement.bind(inbox.inbox).bind(inbox.owner).bind(now.to_sqlx())).await?;
        self.flush().await
    }
}
