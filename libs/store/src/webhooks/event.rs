//! Events that are not delivered to their webhook yet.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use crate::error::StoreError;
use crate::mail::message::{MessageRow, message_columns};
use crate::pool::Store;
use crate::row::optional_time;

/// SQL for the message `m` of an event `e`, with its mailbox `b` and domain `d`: none where it is deleted or expired.
macro_rules! message_of_event {
    ($now:literal) => {
        concat!(
            "FROM visible_message m
             JOIN mailbox b ON b.id = m.owner AND b.removed_at IS NULL
             JOIN domain d ON d.id = b.domain
             WHERE m.class = e.class AND m.id = e.message
               AND m.id >= time_id(",
            $now,
            " - make_interval(hours => e.class))"
        )
    };
}

/// The events of a mailbox wait while its domain does not serve; all of a webhook wait while its tenant is
/// suspended, or while its secret is not delivered to its owner.
const LIST_PENDING_EVENTS: &str = concat!(
    "/* list_pending_events */
    SELECT w.url, w.secret, e.seq AS event_seq, e.id AS event_id, e.attempts, m.serves, ",
    message_columns!(),
    "
    FROM webhook w JOIN tenant t ON t.id = w.tenant AND NOT t.suspended
    LEFT JOIN LATERAL (
        SELECT * FROM webhook_event e WHERE e.webhook = w.id AND e.seq > $3 ORDER BY e.seq LIMIT $4
    ) e ON true
    LEFT JOIN LATERAL (
        SELECT m.*, d.serves ",
    message_of_event!("$5"),
    "
        LIMIT 1
    ) m ON true
    WHERE w.id = $1 AND w.lease_holder = $2 AND w.status = 'active' AND w.active
    ORDER BY e.seq"
);

/// The message is looked up again: a partition that is attached, and gets its first mail, between the plan of the
/// statement that listed the events and its snapshot is missing in that plan.
const DELETE_EVENTS_WITHOUT_MESSAGE: &str = concat!(
    "/* delete_events_without_message */
    DELETE FROM webhook_event e
    WHERE e.webhook = $1 AND e.seq = ANY ($2) AND NOT EXISTS (SELECT ",
    message_of_event!("$3"),
    " OFFSET 0)"
);

/// Events of webhooks that are deleted or disabled, and of messages that have expired.
const DELETE_STALE_EVENTS: &str = "/* delete_stale_events */
    DELETE FROM webhook_event e
    WHERE NOT EXISTS (SELECT FROM webhook w WHERE w.id = e.webhook AND w.status = 'active')
       OR e.message < time_id($1 - make_interval(hours => e.class))";

/// From the first pending event of each webhook; its time is that in the id of its message.
const WEBHOOK_BACKLOG: &str = "/* webhook_backlog */
    WITH RECURSIVE lane (webhook, message) AS (
        SELECT '00000000-0000-0000-0000-000000000000'::uuid, NULL::uuid
        UNION ALL
        SELECT e.webhook, e.message FROM lane l CROSS JOIN LATERAL (
            SELECT e.webhook, e.message FROM webhook_event e WHERE e.webhook > l.webhook
            ORDER BY e.webhook, e.seq LIMIT 1
        ) e
    )
    SELECT count(message) AS webhooks, min(id_time(message)) AS oldest FROM lane";

/// The pending events of a webhook whose lease a process holds.
#[derive(Debug, Clone)]
pub struct PendingEvents {
    /// The URL that they are sent to.
    pub url: String,
    /// The key that signs them, sealed for the webhook.
    pub secret: Vec<u8>,
    /// Events that can be sent, oldest first.
    pub events: Vec<PendingEvent>,
    /// `seq` of the events whose message no longer exists.
    pub without_message: Vec<i64>,
    /// Whether an event waits for a domain that does not serve.
    pub blocked: bool,
    /// `seq` of the last event that was read; `None` where there was none.
    pub last: Option<i64>,
}

/// An event that is not delivered yet.
#[derive(Debug, Clone)]
pub struct PendingEvent {
    /// Its position among those of the webhook.
    pub seq: i64,
    /// Its id, without `evt_`.
    pub id: Uuid,
    /// Number of failed attempts.
    pub attempts: i32,
    /// The message that it reports, of a mailbox.
    pub message: MessageRow,
}

/// The pending events of all webhooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebhookBacklog {
    /// Number of webhooks with pending events.
    pub webhooks: i64,
    /// When the mail of the oldest event was accepted.
    pub oldest: Option<Timestamp>,
}

impl PendingEvents {
    /// Rows of a left join: a webhook without pending events is one row whose event is null.
    fn from_rows(rows: &[PgRow]) -> Result<Option<Self>, StoreError> {
        let Some(first) = rows.first() else { return Ok(None) };
        let mut pending = Self {
            url: first.try_get("url")?,
            secret: first.try_get("secret")?,
            events: Vec::new(),
            without_message: Vec::new(),
            blocked: false,
            last: None,
        };
        for row in rows {
            let Some(seq) = row.try_get("event_seq")? else { break };
            pending.last = Some(seq);
            match row.try_get::<Option<bool>, _>("serves")? {
                None => pending.without_message.push(seq),
                Some(false) => pending.blocked = true,
                Some(true) => pending.events.push(PendingEvent {
                    seq,
                    id: row.try_get("event_id")?,
                    attempts: row.try_get("attempts")?,
                    message: MessageRow::from_row(row)?,
                }),
            }
        }
        Ok(Some(pending))
    }
}

impl WebhookBacklog {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        Ok(Self { webhooks: row.try_get("webhooks")?, oldest: optional_time(row, "oldest")? })
    }
}

impl Store {
    /// Up to `limit` pending events of a webhook after the event `after`; `None` where `holder` does not hold
    /// its lease, it is disabled or not yet active, or its tenant is suspended.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_pending_events(
        &self,
        webhook: Uuid,
        holder: Uuid,
        after: i64,
        limit: i64,
        now: Timestamp,
    ) -> Result<Option<PendingEvents>, StoreError> {
        let statement = sqlx::query(LIST_PENDING_EVENTS)
            .bind(webhook)
            .bind(holder)
            .bind(after)
            .bind(limit)
            .bind(now.to_sqlx());
        PendingEvents::from_rows(&self.fetch_rows(statement).await?)
    }

    /// Deletes those of these events of a webhook, by `seq`, whose message no longer exists.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn delete_events_without_message(
        &self,
        webhook: Uuid,
        events: &[i64],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let statement =
            sqlx::query(DELETE_EVENTS_WITHOUT_MESSAGE).bind(webhook).bind(events).bind(now.to_sqlx());
        self.execute(statement).await
    }

    /// Deletes events that will not be delivered any more.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn delete_stale_events(&self, now: Timestamp) -> Result<(), StoreError> {
        self.execute(sqlx::query(DELETE_STALE_EVENTS).bind(now.to_sqlx())).await
    }

    /// How many webhooks have pending events, and when the mail of the oldest was accepted.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn webhook_backlog(&self) -> Result<WebhookBacklog, StoreError> {
        self.fetch_one(sqlx::query(WEBHOOK_BACKLOG), WebhookBacklog::from_row).await
    }
}
