//! Webhooks as their tenant manages them over HTTP, their secrets for those who seal them again with another key, their
//! events, and the records of deliveries.

pub(crate) mod delivery;
pub(crate) mod event;
pub(crate) mod lease;

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tempmail_model::limits::OWNED_PAGE_SIZE;
use uuid::Uuid;

use crate::error::StoreError;
use crate::pool::Store;
use crate::row::{ChangeError, CreateOutcome, first_column, optional_time, rows_before, time};

/// A webhook without its secret.
#[derive(Debug, Clone)]
pub struct Webhook {
    /// UUIDv7: it tells when the row was created.
    pub id: Uuid,
    /// The URL that its events are sent to.
    pub url: String,
    /// Names of the events that it receives.
    pub events: Vec<String>,
    /// `active` or `disabled`.
    pub status: String,
    /// Failed attempts in a row.
    pub failure_count: i32,
    /// When an event was last delivered.
    pub last_triggered_at: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
}

/// A webhook to create.
#[derive(Debug, Clone, Copy)]
pub struct NewWebhook<'a> {
    /// A new UUIDv7, which the caller makes.
    pub id: Uuid,
    /// Its tenant.
    pub tenant: Uuid,
    /// The URL that its events are sent to.
    pub url: &'a str,
    /// Names of the events that it receives, at least one.
    pub events: &'a [&'a str],
    /// Its secret, sealed for it alone.
    pub secret: &'a [u8],
}

impl Webhook {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.try_get("id")?,
            url: row.try_get("url")?,
            events: row.try_get("events")?,
            status: row.try_get("status")?,
            failure_count: row.try_get("failure_count")?,
            last_triggered_at: optional_time(row, "last_triggered_at")?,
            created_at: time(row, "created_at")?,
        })
    }
}

impl Store {
    /// Creates a webhook, unless its tenant has reached its limit.
    pub async fn create_webhook(
        &self,
        new: NewWebhook<'_>,
        now: Timestamp,
    ) -> Result<CreateOutcome, StoreError> {
        let statement = sqlx::query("/* create_webhook */ SELECT create_webhook($1, $2, $3, $4, $5, $6)")
            .bind(new.id)
            .bind(new.tenant)
            .bind(new.url)
            .bind(new.events)
            .bind(new.secret)
            .bind(now.to_sqlx());
        self.fetch_one(statement, |row| CreateOutcome::from_row("create_webhook", row)).await
    }

    /// A page (from 1, 1,000 webhooks) of a tenant's webhooks, newest first.
    pub async fn list_webhooks(&self, tenant: Uuid, page: i64) -> Result<Vec<Webhook>, StoreError> {
        self.fetch_all(
            sqlx::query(
                "/* list_webhooks */
            SELECT id, url, events, status, failure_count, last_triggered_at, created_at FROM webhook
            WHERE tenant = $1 ORDER BY created_at DESC, id DESC OFFSET $2 LIMIT $3",
            )
            .bind(tenant)
            .bind(rows_before(page, OWNED_PAGE_SIZE))
            .bind(OWNED_PAGE_SIZE),
            Webhook::from_row,
        )
        .await
    }

    /// Deletes a webhook of a tenant: nothing is sent to it any more, and its attempts are no longer listed.
    pub async fn delete_webhook(
        &self,
        tenant: Uuid,
        id: Uuid,
    ) -> Result<Result<(), ChangeError>, StoreError> {
        let managed_by: Option<String> = self
            .fetch_optional(
                sqlx::query(
                    "/* delete_webhook */
            WITH found AS (
                SELECT id, managed_by FROM webhook WHERE id = $1 AND tenant = $2 FOR UPDATE
            ), deleted AS (
                DELETE FROM webhook w USING found f WHERE w.id = f.id AND f.managed_by = 'api'
            )
            SELECT managed_by FROM found",
                )
                .bind(id)
                .bind(tenant),
                first_column,
            )
            .await?;
        ChangeError::unless_changed(managed_by.as_deref(), "webhook", id)
    }

    /// Sets another secret (sealed) of a tenant's webhook and resets its failures, those of attempts in flight
    /// included. Its status stays, and its pending events are due at once.
    pub async fn rotate_webhook_secret(
        &self,
        tenant: Uuid,
        id: Uuid,
        secret: &[u8],
        now: Timestamp,
    ) -> Result<Result<(), ChangeError>, StoreError> {
        let managed_by: Option<String> = self
            .fetch_optional(
                sqlx::query(
                    "/* rotate_webhook_secret */
            WITH found AS (
                SELECT id, managed_by FROM webhook WHERE id = $1 AND tenant = $2 FOR NO KEY UPDATE
            ), rotated AS (
                UPDATE webhook w SET secret = $3, failure_count = 0, failed_at = $4, due_at = '-infinity', rotated = true
                FROM found f WHERE w.id = f.id AND f.managed_by = 'api'
            )
            SELECT managed_by FROM found",
                )
                .bind(id)
                .bind(tenant)
                .bind(secret)
                .bind(now.to_sqlx()),
                first_column,
            )
            .await?;
        ChangeError::unless_changed(managed_by.as_deref(), "webhook", id)
    }
}

/// A row that has changed since it was read keeps its secret, such as one that was rotated. One that is locked by
/// another statement is left out: several workers never wait for each other.
const RESEAL_WEBHOOK_SECRETS: &str = "/* reseal_webhook_secrets */
    WITH unchanged AS MATERIALIZED (
        SELECT w.id, r.resealed FROM unnest($1::uuid[], $2::bytea[], $3::bytea[]) r (id, former, resealed)
        JOIN webhook w ON w.id = r.id AND w.secret = r.former
        FOR NO KEY UPDATE OF w SKIP LOCKED
    )
    UPDATE webhook w SET secret = u.resealed, reseals = w.reseals + 1 FROM unchanged u WHERE w.id = u.id";

/// The sealed secret of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedWebhookSecret {
    /// The webhook.
    pub webhook: Uuid,
    /// Its secret, sealed for it alone.
    pub sealed: Vec<u8>,
}

/// The secret of a webhook, sealed with another key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResealedWebhookSecret {
    /// How it was sealed when it was read.
    pub former: SealedWebhookSecret,
    /// The same secret, sealed again.
    pub resealed: Vec<u8>,
}

impl SealedWebhookSecret {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        Ok(Self { webhook: row.try_get("id")?, sealed: row.try_get("secret")? })
    }
}

impl Store {
    /// Up to `limit` webhooks of all tenants after the webhook `after` (nil: from the first), by id.
    pub async fn list_webhook_secrets(
        &self,
        after: Uuid,
        limit: i64,
    ) -> Result<Vec<SealedWebhookSecret>, StoreError> {
        let statement =
            "/* list_webhook_secrets */ SELECT id, secret FROM webhook WHERE id > $1 ORDER BY id LIMIT $2";
        self.fetch_all(sqlx::query(statement).bind(after).bind(limit), SealedWebhookSecret::from_row).await
    }

    /// Stores secrets that were sealed again, but for those that have changed since they were read, or that another
    /// statement changes now. Returns how many. This is no rotation: the audit trail has no entry.
    pub async fn reseal_webhook_secrets(&self, secrets: &[ResealedWebhookSecret]) -> Result<u64, StoreError> {
        let statement = sqlx::query(RESEAL_WEBHOOK_SECRETS)
            .bind(secrets.iter().map(|secret| secret.former.webhook).collect::<Vec<_>>())
            .bind(secrets.iter().map(|secret| secret.former.sealed.as_slice()).collect::<Vec<_>>())
            .bind(secrets.iter().map(|secret| secret.resealed.as_slice()).collect::<Vec<_>>());
        self.affected_rows(statement).await
    }
}
