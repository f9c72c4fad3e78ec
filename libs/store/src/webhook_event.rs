//! Events on their way to webhooks. A webhook with waiting events is a lane, which one process at a
//! time has in hand for some seconds; what it records counts only while it has.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use uuid::Uuid;

use crate::message::MessageRow;
use crate::row::optional_time;
use crate::{DELIVERY_RETENTION, Store, StoreError};

/// How long a process has a webhook in hand, unless it says again that it has.
pub const WEBHOOK_LEASE: Duration = Duration::from_secs(15);

/// Every webhook with waiting events is found by one step in their index, the first one from the nil
/// UUID, which none has. Whoever was served longest ago comes first. What the process has and does not
/// work on, since it could not let go of it or lost the answer to its claim, it takes again at once.
const CLAIM_WEBHOOKS: &str = "/* claim_webhooks */
    WITH RECURSIVE lane (webhook) AS (
        SELECT '00000000-0000-0000-0000-000000000000'::uuid
        UNION ALL
        SELECT e.webhook FROM lane l CROSS JOIN LATERAL (
            SELECT e.webhook FROM webhook_event e WHERE e.webhook > l.webhook ORDER BY e.webhook LIMIT 1
        ) e
    ), due AS MATERIALIZED (
        SELECT w.id, w.failure_count > 0 AS failing, w.lease_expires_at
        FROM lane l JOIN webhook w ON w.id = l.webhook JOIN tenant t ON t.id = w.tenant
        WHERE w.status = 'active' AND w.active AND w.due_at <= $2 AND NOT t.suspended AND w.id <> ALL ($6)
          AND (w.lease_holder IS NULL OR w.lease_holder = $1 OR w.lease_expires_at < now()) /* lease */
    ), chosen AS MATERIALIZED (
        SELECT w.id FROM webhook w
        WHERE w.id IN ((SELECT d.id FROM due d WHERE NOT d.failing ORDER BY d.lease_expires_at NULLS FIRST LIMIT $3)
                       UNION ALL
                       (SELECT d.id FROM due d WHERE d.failing ORDER BY d.lease_expires_at NULLS FIRST LIMIT $4))
          AND (w.lease_holder IS NULL OR w.lease_holder = $1 OR w.lease_expires_at < now()) /* lease */
        FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE webhook w SET lease_holder = $1, lease_expires_at = now() + $5 * interval '1 second' /* lease */
    FROM chosen c WHERE w.id = c.id
    RETURNING w.id, w.failure_count > 0 AS failing";

const HOLD_WEBHOOKS: &str = "/* renew_webhook_leases */
    UPDATE webhook SET lease_expires_at = now() + $3 * interval '1 second' /* lease */
    WHERE id = ANY ($2) AND lease_holder = $1";

/// Where the domain of a mailbox does not serve just now, its events wait; so do all while the
/// tenant is suspended, or while the webhook's owner does not have its secret.
const LIST_WAITING_EVENTS: &str = "/* list_pending_events */
    SELECT w.url, w.secret, e.seq AS event_seq, e.id AS event_id, e.attempts, m.*
    FROM webhook w JOIN tenant t ON t.id = w.tenant AND NOT t.suspended
    LEFT JOIN LATERAL (
        SELECT * FROM webhook_event e WHERE e.webhook = w.id AND e.seq > $3 ORDER BY e.seq LIMIT $4
    ) e ON true
    LEFT JOIN LATERAL (
        SELECT m.*, d.serves FROM visible_message m
        JOIN mailbox b ON b.id = m.owner AND b.removed_at IS NULL
        JOIN domain d ON d.id = b.domain
        WHERE m.class = e.class AND m.id = e.message
          AND m.id >= time_id($5 - make_interval(hours => e.class))
        LIMIT 1
    ) m ON true
    WHERE w.id = $1 AND w.lease_holder = $2 AND w.status = 'active' AND w.active
    ORDER BY e.seq";

const DROP_EVENTS: &str = "/* delete_events */
    DELETE FROM webhook_event WHERE webhook = $1 AND seq = ANY ($2)";

const RELEASE_WEBHOOK: &str = "/* release_webhook_lease */
    UPDATE webhook SET lease_holder = NULL, lease_expires_at = now(), /* lease */
                       due_at = greatest(due_at, coalesce($3, due_at))
    WHERE id = $1 AND lease_holder = $2";

const RELEASE_WEBHOOKS: &str = "/* release_webhook_leases */
    UPDATE webhook SET lease_holder = NULL, lease_expires_at = now() WHERE lease_holder = $1 /* lease */";

/// Of webhooks that get no events any more, and of messages that have expired.
const FORGET_EVENTS: &str = "/* delete_stale_events */
    DELETE FROM webhook_event e
    WHERE NOT EXISTS (SELECT FROM webhook w WHERE w.id = e.webhook AND w.status = 'active')
       OR e.message < time_id($1 - make_interval(hours => e.class))";

/// The first event of each webhook that waits: an id of a message tells when it came.
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

/// A webhook that a process has in hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimedWebhook {
    /// Its id.
    pub id: Uuid,
    /// Whether its last attempt failed.
    pub failing: bool,
}

/// What waits for a webhook that a process has in hand.
#[derive(Debug, Clone)]
pub struct PendingEvents {
    /// Where they go.
    pub url: String,
    /// What signs them, sealed for the webhook.
    pub secret: Vec<u8>,
    /// Oldest first.
    pub events: Vec<PendingEvent>,
    /// Events whose mail is gone.
    pub without_message: Vec<i64>,
    /// Whether some wait for a domain that does not serve.
    pub blocked: bool,
    /// The last event that was looked at; `None` where there was none.
    pub last: Option<i64>,
}

/// An event that waits.
#[derive(Debug, Clone)]
pub struct PendingEvent {
    /// Its place among those of the webhook.
    pub seq: i64,
    /// Its id, without `evt_`.
    pub id: Uuid,
    /// Attempts that were made.
    pub attempts: i32,
    /// What it is about: a message of a mailbox.
    pub message: MessageRow,
}

/// What waits in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebhookBacklog {
    /// Webhooks with waiting events.
    pub webhooks: i64,
    /// When the mail of the oldest of them came.
    pub oldest: Option<Timestamp>,
}

/// One attempt, as it ended.
#[derive(Debug, Clone)]
pub struct DeliveryAttempt {
    /// Id of the record, which tells when the attempt ended.
    pub id: Uuid,
    /// Which event.
    pub event: Uuid,
    /// Its place.
    pub seq: i64,
    /// Which one it was for its event, from 1.
    pub number: i32,
    /// When it started_at.
    pub started_at: Timestamp,
    /// Status of the answer; 0 where there was none.
    pub status_code: i32,
    /// Why it failed; `None` where it did not.
    pub error: Option<&'static str>,
    /// How long it took, milliseconds.
    pub duration_ms: i32,
    /// When the receiver wants to be asked again.
    pub retry_after: Option<SignedDuration>,
}

/// What came of recording attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordOutcome {
    /// The webhook goes on.
    Active,
    /// That was one failure too many: it gets nothing any more.
    Disabled,
    /// The process does not have the webhook in hand: nothing was recorded.
    Fenced,
}

impl Store {
    /// Takes webhooks in hand that have events waiting and are due: up to `healthy` whose last
    /// attempt succeeded (or that had none), and up to `failing` others. None of those that it works
    /// on just now, `in_hand`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn claim_webhooks(
        &self,
        holder: Uuid,
        in_hand: &[Uuid],
        healthy: i64,
        failing: i64,
        now: Timestamp,
    ) -> Result<Vec<ClaimedWebhook>, StoreError> {
        let rows = sqlx::query(CLAIM_WEBHOOKS)
            .bind(holder)
            .bind(now.to_sqlx())
            .bind(healthy)
            .bind(failing)
            .bind(WEBHOOK_LEASE.as_secs_f64())
            .bind(in_hand)
            .fetch_all(self.pool())
            .await?;
        rows.iter()
            .map(|row| Ok(ClaimedWebhook { id: row.try_get("id")?, failing: row.try_get("failing")? }))
            .collect()
    }

    /// Keeps webhooks that `holder` has in hand.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn renew_webhook_leases(&self, holder: Uuid, webhooks: &[Uuid]) -> Result<(), StoreError> {
        sqlx::query(HOLD_WEBHOOKS)
            .bind(holder)
            .bind(webhooks)
            .bind(WEBHOOK_LEASE.as_secs_f64())
            .execute(self.pool())
            .await?;
        Ok(())
    }

    /// What waits for a webhook after the event `after`; `None` where `holder` does not have it in
    /// hand, it is disabled, its owner does not have its secret yet, or its tenant is suspended.
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
        let rows = sqlx::query(LIST_WAITING_EVENTS)
            .bind(webhook)
            .bind(holder)
            .bind(after)
            .bind(limit)
            .bind(now.to_sqlx())
            .fetch_all(self.pool())
            .await?;
        let Some(first) = rows.first() else { return Ok(None) };
        let mut waiting = PendingEvents {
            url: first.try_get("url")?,
            secret: first.try_get("secret")?,
            events: Vec::new(),
            without_message: Vec::new(),
            blocked: false,
            last: None,
        };
        for row in &rows {
            let Some(seq) = row.try_get("event_seq")? else { break };
            waiting.last = Some(seq);
            match row.try_get::<Option<bool>, _>("serves")? {
                None => waiting.without_message.push(seq),
                Some(false) => waiting.blocked = true,
                Some(true) => waiting.events.push(PendingEvent {
                    seq,
                    id: row.try_get("event_id")?,
                    attempts: row.try_get("attempts")?,
                    message: MessageRow::from_row(row)?,
                }),
            }
        }
        Ok(Some(waiting))
    }

    /// Drops events of a webhook.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn delete_events(&self, webhook: Uuid, events: &[i64]) -> Result<(), StoreError> {
        sqlx::query(DROP_EVENTS).bind(webhook).bind(events).execute(self.pool()).await?;
        Ok(())
    }

    /// Records attempts in the order in which they ended. `gaps`: time to the next attempt after the
    /// first, second, … failure in a row; one failure more disables the webhook.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing is recorded.
    pub async fn record_deliveries(
        &self,
        webhook: Uuid,
        holder: Uuid,
        attempts: &[DeliveryAttempt],
        gaps: &[SignedDuration],
        now: Timestamp,
    ) -> Result<RecordOutcome, StoreError> {
        let seconds = |duration: SignedDuration| duration.as_secs_f64();
        let word: String = sqlx::query_scalar(
            "/* record_deliveries */
            SELECT record_deliveries($1, $2, $3,
                ARRAY(SELECT make_interval(secs => g) FROM unnest($4::float8[]) WITH ORDINALITY AS u (g, ord) ORDER BY ord),
                $5, $6, $7, $8, $9, $10, $11, $12,
                ARRAY(SELECT make_interval(secs => r) FROM unnest($13::float8[]) WITH ORDINALITY AS u (r, ord) ORDER BY ord))",
        )
        .bind(webhook)
        .bind(holder)
        .bind(now.to_sqlx())
        .bind(gaps.iter().copied().map(seconds).collect::<Vec<_>>())
        .bind(attempts.iter().map(|attempt| attempt.seq).collect::<Vec<_>>())
        .bind(attempts.iter().map(|attempt| attempt.event).collect::<Vec<_>>())
        .bind(attempts.iter().map(|attempt| attempt.number).collect::<Vec<_>>())
        .bind(attempts.iter().map(|attempt| attempt.started_at.to_sqlx()).collect::<Vec<_>>())
        .bind(attempts.iter().map(|attempt| attempt.id).collect::<Vec<_>>())
        .bind(attempts.iter().map(|attempt| attempt.status_code).collect::<Vec<_>>())
        .bind(attempts.iter().map(|attempt| attempt.error).collect::<Vec<_>>())
        .bind(attempts.iter().map(|attempt| attempt.duration_ms).collect::<Vec<_>>())
        .bind(attempts.iter().map(|attempt| attempt.retry_after.map(seconds)).collect::<Vec<_>>())
        .fetch_one(self.pool())
        .await?;
        match word.as_str() {
            "active" => Ok(RecordOutcome::Active),
            "disabled" => Ok(RecordOutcome::Disabled),
            "fenced" => Ok(RecordOutcome::Fenced),
            _ => Err(StoreError::Inconsistent { table: "webhook", column: "status", id: webhook }),
        }
    }

    /// Lets go of a webhook; with `due_at` nobody takes it before then.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn release_webhook_lease(
        &self,
        webhook: Uuid,
        holder: Uuid,
        due_at: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        sqlx::query(RELEASE_WEBHOOK)
            .bind(webhook)
            .bind(holder)
            .bind(due_at.map(|at| at.to_sqlx()))
            .execute(self.pool())
            .await?;
        Ok(())
    }

    /// Lets go of everything that `holder` has in hand.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn release_webhook_leases(&self, holder: Uuid) -> Result<(), StoreError> {
        sqlx::query(RELEASE_WEBHOOKS).bind(holder).execute(self.pool()).await?;
        Ok(())
    }

    /// Drops events that nobody is to be told of any more.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn delete_stale_events(&self, now: Timestamp) -> Result<(), StoreError> {
        sqlx::query(FORGET_EVENTS).bind(now.to_sqlx()).execute(self.pool()).await?;
        Ok(())
    }

    /// How many webhooks have events waiting, and when the mail of the oldest came.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn webhook_backlog(&self) -> Result<WebhookBacklog, StoreError> {
        let row = sqlx::query(WEBHOOK_BACKLOG).fetch_one(self.pool()).await?;
        Ok(WebhookBacklog { webhooks: row.try_get("webhooks")?, oldest: optional_time(&row, "oldest")? })
    }

    /// Makes the partition for attempts of the day of `at`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn ensure_delivery_partition(&self, at: Timestamp) -> Result<(), StoreError> {
        sqlx::query("/* ensure_delivery_partition */ SELECT ensure_delivery_partition($1)")
            .bind(at.to_sqlx())
            .execute(self.pool())
            .await?;
        Ok(())
    }

    /// Drops the partitions of days whose attempts are listed no more.
    ///
    /// # Errors
    /// [`StoreError`]; also where somebody reads them just now.
    pub async fn drop_delivery_partitions(&self, now: Timestamp) -> Result<(), StoreError> {
        sqlx::query("/* drop_delivery_partitions */ SELECT drop_delivery_partitions($1)")
            .bind((now - DELIVERY_RETENTION).to_sqlx())
            .execute(self.pool())
            .await?;
        Ok(())
    }
}
