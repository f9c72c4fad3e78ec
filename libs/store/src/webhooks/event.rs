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

/// SQL for the events `$events` of the webhook `$1` that `$2` holds, with their messages at `$3`. The events of a
/// mailbox wait while its domain does not serve; all of a webhook wait while its tenant is suspended, or while its
/// secret is not delivered to its owner.
macro_rules! pending_events {
    ($name:literal, $columns:literal, $events:literal) => {
        concat!(
            $name,
            "
    SELECT ",
            $columns,
            "w.url, w.secret, w.rotated, e.seq AS event_seq, e.id AS event_id, e.attempts, nullif(e.due_at, '-infinity') AS due_at,
           m.serves, ",
            message_columns!(),
            "
    FROM webhook w JOIN tenant t ON t.id = w.tenant AND NOT t.suspended
    LEFT JOIN LATERAL (",
            $events,
            ") e ON true
    LEFT JOIN LATERAL (
        SELECT ",
            message_columns!(),
            ", d.serves ",
            message_of_event!("$3"),
            "
        LIMIT 1
    ) m ON true
    WHERE w.id = $1 AND w.lease_holder = $2 AND w.status = 'active' AND w.active
    ORDER BY e.due_at, e.seq"
        )
    };
}

/// Events that were never tried have the lowest time, and so does the cursor before the first of the others, with the
/// highest `seq`. The bounds are those of the index: no other one has this order.
const LIST_PENDING_EVENTS: &str = pending_events!(
    "/* list_pending_events */",
    "",
    "
        (SELECT e.seq, e.id, e.attempts, e.due_at, e.class, e.message FROM webhook_event e
          WHERE e.webhook = w.id AND e.due_at <= '-infinity' AND (e.due_at, e.seq) > ('-infinity', $4)
          ORDER BY e.due_at, e.seq LIMIT $5)
        UNION ALL
        (SELECT e.seq, e.id, e.attempts, e.due_at, e.class, e.message FROM webhook_event e
          WHERE e.webhook = w.id AND e.due_at <= $3 AND (e.due_at, e.seq) > (coalesce($6::timestamptz, '-infinity'), $7)
          ORDER BY e.due_at, e.seq LIMIT $8)"
);

const FIND_PROBE: &str = pending_events!(
    "/* find_probe */",
    "EXISTS (SELECT FROM webhook_event e WHERE e.webhook = w.id AND e.due_at <= $3) AS is_due, ",
    "SELECT e.seq, e.id, e.attempts, e.due_at, e.class, e.message FROM webhook_event e
      WHERE e.webhook = w.id AND e.seq = next_probe(w.id, $4, $3)"
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

/// The first ones, so that it takes a bounded time; the others are due by their own time.
const APPLY_ROTATION: &str = "/* apply_rotation */
    WITH rotated AS (
        UPDATE webhook SET rotated = false WHERE id = $1 AND lease_holder = $2 AND rotated RETURNING id
    ), waiting AS MATERIALIZED (
        SELECT e.seq FROM webhook_event e WHERE e.webhook = $1 AND e.due_at > $3 ORDER BY e.due_at, e.seq LIMIT 1000
    )
    UPDATE webhook_event e SET due_at = $3 FROM rotated r, waiting n WHERE e.webhook = r.id AND e.seq = n.seq";

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
    /// Whether its secret was rotated, and events that were tried are not yet due because of it.
    pub rotated: bool,
    /// Events that can be sent: those that were never tried, oldest first, and then those that are due again, by their
    /// time.
    pub events: Vec<PendingEvent>,
    /// `seq` of the events whose message no longer exists.
    pub without_message: Vec<i64>,
    /// `seq` of the events that wait for a domain that does not serve.
    pub blocked: Vec<i64>,
    /// The position after all events that were read.
    pub read: EventCursor,
}

/// What a failing webhook is tried with.
#[derive(Debug, Clone)]
pub struct Probe {
    /// At most one event.
    pub pending: PendingEvents,
    /// Whether events are due. If there is none to send, they wait for their domain.
    pub is_due: bool,
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
    /// When it was due again; `None` where it was never tried.
    pub due_at: Option<Timestamp>,
    /// The message that it reports, of a mailbox.
    pub message: MessageRow,
}

/// A position among the pending events of a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventCursor {
    /// `seq` of the last one that was never tried.
    untried: i64,
    /// Time and `seq` of the last one that was due again.
    retried: Option<(Timestamp, i64)>,
}

/// How many events to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventLimits {
    /// Events that were never tried.
    pub untried: i64,
    /// Events that are due again.
    pub retried: i64,
}

/// The pending events of all webhooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebhookBacklog {
    /// Number of webhooks with pending events.
    pub webhooks: i64,
    /// When the mail of the oldest event was accepted.
    pub oldest: Option<Timestamp>,
}

impl EventCursor {
    /// The position just before the event `seq`, if it was never tried.
    pub fn before(seq: i64) -> Self {
        Self { untried: seq - 1, retried: None }
    }

    /// Moves it after an event that was due again then, or never tried.
    pub fn pass(&mut self, due_at: Option<Timestamp>, seq: i64) {
        match due_at {
            Some(due_at) => self.retried = Some((due_at, seq)),
            None => self.untried = seq,
        }
    }
}

impl PendingEvents {
    /// Rows of a left join: a webhook without pending events is one row whose event is null.
    fn from_rows(rows: &[PgRow], cursor: EventCursor) -> Result<Option<Self>, StoreError> {
        let Some(first) = rows.first() else { return Ok(None) };
        let mut pending = Self {
            url: first.try_get("url")?,
            secret: first.try_get("secret")?,
            rotated: first.try_get("rotated")?,
            events: Vec::new(),
            without_message: Vec::new(),
            blocked: Vec::new(),
            read: cursor,
        };
        for row in rows {
            let Some(seq) = row.try_get("event_seq")? else { break };
            let due_at = optional_time(row, "due_at")?;
            pending.read.pass(due_at, seq);
            match row.try_get::<Option<bool>, _>("serves")? {
                None => pending.without_message.push(seq),
                Some(false) => pending.blocked.push(seq),
                Some(true) => pending.events.push(PendingEvent {
                    seq,
                    id: row.try_get("event_id")?,
                    attempts: row.try_get("attempts")?,
                    due_at,
                    message: MessageRow::from_row(row)?,
                }),
            }
        }
        Ok(Some(pending))
    }
}

impl Probe {
    fn from_rows(rows: &[PgRow]) -> Result<Option<Self>, StoreError> {
        let Some(pending) = PendingEvents::from_rows(rows, EventCursor::default())? else { return Ok(None) };
        let is_due = rows.first().map_or(Ok(false), |row| row.try_get("is_due"))?;
        Ok(Some(Self { pending, is_due }))
    }
}

impl WebhookBacklog {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        Ok(Self { webhooks: row.try_get("webhooks")?, oldest: optional_time(row, "oldest")? })
    }
}

impl Store {
    /// Pending events of a webhook after a position that can be sent while it does not fail: those that were never
    /// tried, and those that are due again. `None` where `holder` does not hold its lease, it is disabled or not yet
    /// active, or its tenant is suspended.
    pub async fn list_pending_events(
        &self,
        webhook: Uuid,
        holder: Uuid,
        after: EventCursor,
        limits: EventLimits,
        now: Timestamp,
    ) -> Result<Option<PendingEvents>, StoreError> {
        let statement = sqlx::query(LIST_PENDING_EVENTS)
            .bind(webhook)
            .bind(holder)
            .bind(now.to_sqlx())
            .bind(after.untried)
            .bind(limits.untried)
            .bind(after.retried.map(|(due_at, _)| due_at.to_sqlx()))
            .bind(after.retried.map_or(i64::MAX, |(_, seq)| seq))
            .bind(limits.retried);
        PendingEvents::from_rows(&self.fetch_rows(statement).await?, after)
    }

    /// The one event that a failing webhook is tried with: the oldest that was never tried, of the mailbox with the
    /// fewest failures since the last success, else the one that is due again first; none of `except`, by `seq`. `None`
    /// as [`list_pending_events`](Self::list_pending_events).
    pub async fn find_probe(
        &self,
        webhook: Uuid,
        holder: Uuid,
        except: &[i64],
        now: Timestamp,
    ) -> Result<Option<Probe>, StoreError> {
        let statement = sqlx::query(FIND_PROBE).bind(webhook).bind(holder).bind(now.to_sqlx()).bind(except);
        Probe::from_rows(&self.fetch_rows(statement).await?)
    }

    /// Makes up to 1,000 events of a webhook that were tried due now, after its secret was rotated.
    pub async fn apply_rotation(
        &self,
        webhook: Uuid,
        holder: Uuid,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.execute(sqlx::query(APPLY_ROTATION).bind(webhook).bind(holder).bind(now.to_sqlx())).await
    }

    /// Deletes those of these events of a webhook, by `seq`, whose message no longer exists.
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
    pub async fn delete_stale_events(&self, now: Timestamp) -> Result<(), StoreError> {
        self.execute(sqlx::query(DELETE_STALE_EVENTS).bind(now.to_sqlx())).await
    }

    /// How many webhooks have pending events, and when the mail of the oldest was accepted.
    pub async fn webhook_backlog(&self) -> Result<WebhookBacklog, StoreError> {
        self.fetch_one(sqlx::query(WEBHOOK_BACKLOG), WebhookBacklog::from_row).await
    }
}
