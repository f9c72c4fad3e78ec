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

/// SQL that claims webhooks of the lanes `$lane (webhook, due_at)`: each with the time of its event that is due
/// first. The webhook whose last lease ended first comes first. A process claims its own leases again at once if it
/// does not work on them, because a release failed or the answer to a claim was lost. A webhook that failed once,
/// with a status, is not failing yet: another event is tried at once.
macro_rules! claim {
    ($name:literal, $lane:literal) => {
        concat!(
            $name,
            "
    WITH RECURSIVE lane (webhook, due_at) AS (",
            $lane,
            "), due AS MATERIALIZED (
        SELECT w.id, w.failure_count > 0 AND w.due_at > '-infinity' AS failing, w.lease_expires_at
        FROM lane l JOIN webhook w ON w.id = l.webhook JOIN tenant t ON t.id = w.tenant
        WHERE (l.due_at <= $2 OR w.rotated)
          AND w.status = 'active' AND w.active AND w.due_at <= $2 AND NOT t.suspended AND w.id <> ALL ($6)
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
    RETURNING w.id, w.failure_count, w.failure_count > 0 AND w.due_at > '-infinity' AS failing"
        )
    };
}

/// Each webhook with pending events is found by one step in their index; the first step starts at the nil UUID, which
/// no webhook has.
const CLAIM_WEBHOOKS: &str = claim!(
    "/* claim_webhooks */",
    "
        SELECT '00000000-0000-0000-0000-000000000000'::uuid, 'infinity'::timestamptz
        UNION ALL
        SELECT e.webhook, e.due_at FROM lane l CROSS JOIN LATERAL (
            SELECT e.webhook, e.due_at FROM webhook_event e WHERE e.webhook > l.webhook
            ORDER BY e.webhook, e.due_at LIMIT 1
        ) e
    "
);

const CLAIM_WEBHOOKS_OF: &str = claim!(
    "/* claim_webhooks_of */",
    "
        SELECT n.id, e.due_at
        FROM (SELECT w.id FROM webhook w WHERE w.tenant = ANY ($7) UNION SELECT unnest($8)) n
        CROSS JOIN LATERAL (
            SELECT e.due_at FROM webhook_event e WHERE e.webhook = n.id ORDER BY e.due_at LIMIT 1
        ) e
    "
);

const RENEW_WEBHOOK_LEASES: &str = "/* renew_webhook_leases */
    UPDATE webhook SET lease_expires_at = now() + $3 * interval '1 second' /* lease */
    WHERE id = ANY ($2) AND lease_holder = $1";

const RELEASE_WEBHOOK_LEASE: &str = "/* release_webhook_lease */
    UPDATE webhook SET lease_holder = NULL, lease_expires_at = now(), /* lease */
                       due_at = greatest(due_at, coalesce($3, due_at))
    WHERE id = $1 AND lease_holder = $2";

const RELEASE_WEBHOOK_LEASES: &str = "/* release_webhook_leases */
    UPDATE webhook SET lease_holder = NULL, lease_expires_at = now() WHERE lease_holder = $1 /* lease */";

/// Which webhooks are claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimScope {
    /// All with pending events: this costs time for each of them, due or not.
    All,
    /// Those of tenants that got mail, and others that may have become due.
    Of {
        /// The tenants.
        tenants: Vec<Uuid>,
        /// The other webhooks.
        webhooks: Vec<Uuid>,
    },
}

/// How many webhooks are claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimLimits {
    /// Those that are not failing.
    pub healthy: i64,
    /// Others.
    pub failing: i64,
}

/// A webhook whose lease a process holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimedWebhook {
    /// The id of its row.
    pub id: Uuid,
    /// Failed attempts in a row.
    pub failures: i32,
    /// Whether its last attempts failed: it is tried with one event, which may take its full timeout.
    pub failing: bool,
}

impl ClaimedWebhook {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.try_get("id")?,
            failures: row.try_get("failure_count")?,
            failing: row.try_get("failing")?,
        })
    }
}

impl Store {
    /// Claims the leases of webhooks that are due with an event that is, of those of `scope`.
    pub async fn claim_webhooks(
        &self,
        holder: Uuid,
        scope: &ClaimScope,
        limits: ClaimLimits,
        in_flight: &[Uuid],
        now: Timestamp,
    ) -> Result<Vec<ClaimedWebhook>, StoreError> {
        let statement = match scope {
            ClaimScope::All => CLAIM_WEBHOOKS,
            ClaimScope::Of { .. } => CLAIM_WEBHOOKS_OF,
        };
        let statement = sqlx::query(statement)
            .bind(holder)
            .bind(now.to_sqlx())
            .bind(limits.healthy)
            .bind(limits.failing)
            .bind(WEBHOOK_LEASE.as_secs_f64())
            .bind(in_flight);
        let statement = match scope {
            ClaimScope::All => statement,
            ClaimScope::Of { tenants, webhooks } => statement.bind(tenants).bind(webhooks),
        };
        self.fetch_all(statement, ClaimedWebhook::from_row).await
    }

    /// Renews leases that `holder` holds.
    pub async fn renew_webhook_leases(&self, holder: Uuid, webhooks: &[Uuid]) -> Result<(), StoreError> {
        self.execute(
            sqlx::query(RENEW_WEBHOOK_LEASES).bind(holder).bind(webhooks).bind(WEBHOOK_LEASE.as_secs_f64()),
        )
        .await
    }

    /// Releases the lease of a webhook; with `due_at` it can't be claimed before then.
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
    pub async fn release_webhook_leases(&self, holder: Uuid) -> Result<(), StoreError> {
        self.execute(sqlx::query(RELEASE_WEBHOOK_LEASES).bind(holder)).await
    }
}
