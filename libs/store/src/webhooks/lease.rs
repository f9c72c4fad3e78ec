//! Leases of webhooks. A webhook with pending events is a lane: one process at a time holds its lease and delivers
//! its events, and only what the holder of the lease records counts.

use std::time::Duration;

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use crate::error::StoreError;
use crate::pool::Store;

/// How long the lease of a webhook lasts unless it is renewed.
pub const WEBHOOK_LEASE: Duration = Duration::from_secs(15);

/// Each webhook with pending events is found by one step in their index; the first step starts at the nil UUID,
/// which no webhook has. The webhook whose last lease ended first comes first. A process claims its own leases
/// again at once if it does not work on them, because a release failed or the answer to a claim was lost.
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

const RENEW_WEBHOOK_LEASES: &str = "/* renew_webhook_leases */
    UPDATE webhook SET lease_expires_at = now() + $3 * interval '1 second' /* lease */
    WHERE id = ANY ($2) AND lease_holder = $1";

const RELEASE_WEBHOOK_LEASE: &str = "/* release_webhook_lease */
    UPDATE webhook SET lease_holder = NULL, lease_expires_at = now(), /* lease */
                       due_at = greatest(due_at, coalesce($3, due_at))
    WHERE id = $1 AND lease_holder = $2";

const RELEASE_WEBHOOK_LEASES: &str = "/* release_webhook_leases */
    UPDATE webhook SET lease_holder = NULL, lease_expires_at = now() WHERE lease_holder = $1 /* lease */";

/// A webhook whose lease a process holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimedWebhook {
    /// Its id.
    pub id: Uuid,
    /// Whether its last attempt failed.
    pub failing: bool,
}

impl ClaimedWebhook {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        Ok(Self { id: row.try_get("id")?, failing: row.try_get("failing")? })
    }
}

impl Store {
    /// Claims the leases of webhooks that have pending events and are due: up to `healthy` whose last attempt
    /// succeeded (or that had none), and up to `failing` others. Those that the process works on, `in_flight`,
    /// are left out.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn claim_webhooks(
        &self,
        holder: Uuid,
        in_flight: &[Uuid],
        healthy: i64,
        failing: i64,
        now: Timestamp,
    ) -> Result<Vec<ClaimedWebhook>, StoreError> {
        let statement = sqlx::query(CLAIM_WEBHOOKS)
            .bind(holder)
            .bind(now.to_sqlx())
            .bind(healthy)
            .bind(failing)
            .bind(WEBHOOK_LEASE.as_secs_f64())
            .bind(in_flight);
        self.fetch_all(statement, ClaimedWebhook::from_row).await
    }

    /// Renews leases that `holder` holds.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn renew_webhook_leases(&self, holder: Uuid, webhooks: &[Uuid]) -> Result<(), StoreError> {
        self.execute(
            sqlx::query(RENEW_WEBHOOK_LEASES).bind(holder).bind(webhooks).bind(WEBHOOK_LEASE.as_secs_f64()),
        )
        .await
    }

    /// Releases the lease of a webhook; with `due_at` it can't be claimed before then.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn release_webhook_lease(
        &self,
        webhook: Uuid,
        holder: Uuid,
        due_at: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        self.execute(
            sqlx::query(RELEASE_WEBHOOK_LEASE).bind(webhook).bind(holder).bind(due_at.map(|at| at.to_sqlx())),
        )
        .await
    }

    /// Releases all leases that `holder` holds.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn release_webhook_leases(&self, holder: Uuid) -> Result<(), StoreError> {
        self.execute(sqlx::query(RELEASE_WEBHOOK_LEASES).bind(holder)).await
    }
}
