//! Attempts to deliver events: recorded with what follows for the webhook, and listed for a week.

use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tempmail_model::id::{id_time, lowest_id};
use uuid::Uuid;

use crate::error::StoreError;
use crate::pool::Store;
use crate::row::optional_time;

const RECORD_DELIVERIES: &str = "/* record_deliveries */
    SELECT o_outcome, o_failure_count, nullif(o_due_at, '-infinity') AS due_at
    FROM record_deliveries($1, $2, $3,
        ARRAY(SELECT make_interval(secs => g) FROM unnest($4::float8[]) WITH ORDINALITY AS u (g, ord) ORDER BY ord),
        $5, $6, $7, $8, $9, $10, $11, $12, $13, $14,
        ARRAY(SELECT make_interval(secs => r) FROM unnest($15::float8[]) WITH ORDINALITY AS u (r, ord) ORDER BY ord))";

/// How long an attempt is listed.
pub const DELIVERY_RETENTION: SignedDuration = SignedDuration::from_hours(7 * 24);

/// An attempt, as its tenant lists it.
#[derive(Debug, Clone)]
pub struct WebhookDelivery {
    /// Its id, with the time at which it ended.
    pub id: Uuid,
    /// Name of the event.
    pub event_type: String,
    /// Id of the event, `evt_…`.
    pub event_id: String,
    /// Status of the response; 0 without a response.
    pub status_code: i32,
    /// Why it failed; `None` where it did not.
    pub error: Option<String>,
    /// Why TLS failed.
    pub detail: Option<String>,
    /// Whether the event is not sent any more, although it was not delivered.
    pub given_up: bool,
    /// Number of the attempt for its event, from 1.
    pub attempt: i32,
    /// Its duration, milliseconds.
    pub duration_ms: i32,
}

impl WebhookDelivery {
    /// When it ended.
    pub fn created_at(&self) -> Timestamp {
        id_time(self.id).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    fn from_row(row: &PgRow) -> Result<Option<Self>, StoreError> {
        let Some(id) = row.try_get("id")? else { return Ok(None) };
        Ok(Some(Self {
            id,
            event_type: row.try_get("event_type")?,
            event_id: row.try_get("event_id")?,
            status_code: row.try_get("status_code")?,
            error: row.try_get("error")?,
            detail: row.try_get("detail")?,
            given_up: row.try_get("given_up")?,
            attempt: row.try_get("attempt")?,
            duration_ms: row.try_get("duration_ms")?,
        }))
    }
}

/// An attempt to record.
#[derive(Debug, Clone)]
pub struct DeliveryAttempt {
    /// Id of the record, with the time at which the attempt ended.
    pub id: Uuid,
    /// Id of the event.
    pub event: Uuid,
    /// Position of the event among those of the webhook.
    pub seq: i64,
    /// The mailbox of its message.
    pub mailbox: Uuid,
    /// Number of the attempt for its event, from 1.
    pub number: i32,
    /// When it started.
    pub started_at: Timestamp,
    /// Status of the response; 0 without a response.
    pub status_code: i32,
    /// Why it failed; `None` where it did not.
    pub error: Option<&'static str>,
    /// Why TLS failed.
    pub detail: Option<&'static str>,
    /// Its duration, milliseconds.
    pub duration_ms: i32,
    /// Time to the next attempt that the receiver requested.
    pub retry_after: Option<SignedDuration>,
}

/// What came of recording attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordOutcome {
    /// Recorded; the webhook stays active.
    Active {
        /// Failed attempts in a row.
        failures: i32,
        /// No attempt before; `None`: at once.
        due_at: Option<Timestamp>,
    },
    /// Recorded; the webhook failed too often in a row and is disabled.
    Disabled,
    /// Not recorded: the process does not hold the lease of the webhook.
    Fenced,
}

impl RecordOutcome {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        match row.try_get("o_outcome")? {
            "active" => Ok(Self::Active {
                failures: row.try_get("o_failure_count")?,
                due_at: optional_time(row, "due_at")?,
            }),
            "disabled" => Ok(Self::Disabled),
            "fenced" => Ok(Self::Fenced),
            word => Err(StoreError::unknown_word("record_deliveries", word)),
        }
    }
}

impl Store {
    /// Records attempts in the order in which they ended. `gaps`: time to the next attempt after the first, second, …
    /// failure, in a row of the webhook, or of the event; with one failure more the webhook is disabled, or the event
    /// given up.
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
        let statement = sqlx::query(RECORD_DELIVERIES)
            .bind(webhook)
            .bind(holder)
            .bind(now.to_sqlx())
            .bind(gaps.iter().copied().map(seconds).collect::<Vec<_>>())
            .bind(attempts.iter().map(|attempt| attempt.seq).collect::<Vec<_>>())
            .bind(attempts.iter().map(|attempt| attempt.event).collect::<Vec<_>>())
            .bind(attempts.iter().map(|attempt| attempt.mailbox).collect::<Vec<_>>())
            .bind(attempts.iter().map(|attempt| attempt.number).collect::<Vec<_>>())
            .bind(attempts.iter().map(|attempt| attempt.started_at.to_sqlx()).collect::<Vec<_>>())
            .bind(attempts.iter().map(|attempt| attempt.id).collect::<Vec<_>>())
            .bind(attempts.iter().map(|attempt| attempt.status_code).collect::<Vec<_>>())
            .bind(attempts.iter().map(|attempt| attempt.error).collect::<Vec<_>>())
            .bind(attempts.iter().map(|attempt| attempt.detail).collect::<Vec<_>>())
            .bind(attempts.iter().map(|attempt| attempt.duration_ms).collect::<Vec<_>>())
            .bind(attempts.iter().map(|attempt| attempt.retry_after.map(seconds)).collect::<Vec<_>>());
        self.fetch_one(statement, RecordOutcome::from_row).await
    }

    /// The last `limit` attempts of a tenant's webhook within [`DELIVERY_RETENTION`], newest first;
    /// `None` where the tenant has no such webhook.
    pub async fn list_webhook_deliveries(
        &self,
        tenant: Uuid,
        webhook: Uuid,
        limit: i64,
        now: Timestamp,
    ) -> Result<Option<Vec<WebhookDelivery>>, StoreError> {
        // A webhook without attempts is one row of nulls.
        let statement = sqlx::query(
            "/* list_webhook_deliveries */
            SELECT a.id, a.event_type, a.event_id, a.status_code, a.error, a.detail, a.given_up, a.attempt,
                   a.duration_ms FROM webhook w
            LEFT JOIN LATERAL (
                SELECT d.id, d.event_type, d.event_id, d.status_code, d.error, d.detail, d.given_up, d.attempt,
                       d.duration_ms
                FROM webhook_delivery d WHERE d.webhook = w.id AND d.id >= $3
                ORDER BY d.id DESC LIMIT $4
            ) a ON true
            WHERE w.id = $1 AND w.tenant = $2
            ORDER BY a.id DESC",
        )
        .bind(webhook)
        .bind(tenant)
        .bind(lowest_id(now - DELIVERY_RETENTION))
        .bind(limit);
        let rows = self.fetch_rows(statement).await?;
        if rows.is_empty() {
            return Ok(None);
        }
        rows.iter()
            .filter_map(|row| WebhookDelivery::from_row(row).transpose())
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// Creates the partition for attempts of the day of `at` (UTC).
    pub async fn ensure_delivery_partition(&self, at: Timestamp) -> Result<(), StoreError> {
        self.execute(
            sqlx::query("/* ensure_delivery_partition */ SELECT ensure_delivery_partition($1)")
                .bind(at.to_sqlx()),
        )
        .await
    }

    /// Drops the partitions of days whose attempts are no longer listed; none where another transaction uses one.
    pub async fn drop_delivery_partitions(&self, now: Timestamp) -> Result<(), StoreError> {
        let statement = sqlx::query("/* drop_delivery_partitions */ SELECT drop_delivery_partitions($1)")
            .bind((now - DELIVERY_RETENTION).to_sqlx());
        self.execute_unless_locked(statement).await.map(drop)
    }
}
