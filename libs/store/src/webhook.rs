//! Webhooks as their tenant manages them, and the attempts at delivery.

use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tempmail_model::id::{id_time, lowest_id};
use tempmail_model::limits::PAGE_SIZE;
use uuid::Uuid;

use crate::change::{ChangeError, CreateOutcome};
use crate::page::rows_before;
use crate::row::{optional_time, time};
use crate::{Store, StoreError};

/// How long an attempt at delivery is listed.
pub const DELIVERY_RETENTION: SignedDuration = SignedDuration::from_hours(7 * 24);

/// A webhook without its secret.
#[derive(Debug, Clone)]
pub struct Webhook {
    /// Its id.
    pub id: Uuid,
    /// Where its events go.
    pub url: String,
    /// Names of the events it gets.
    pub events: Vec<String>,
    /// `active` or `disabled`.
    pub status: String,
    /// Failed attempts in a row.
    pub failure_count: i32,
    /// When an event was last delivered.
    pub last_triggered_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A webhook to be made.
#[derive(Debug, Clone, Copy)]
pub struct NewWebhook<'a> {
    /// Its id.
    pub id: Uuid,
    /// Whose it will be.
    pub tenant: Uuid,
    /// Where its events will go.
    pub url: &'a str,
    /// Names of the events it will get, at least one.
    pub events: &'a [&'a str],
    /// Its secret, sealed for it alone.
    pub secret: &'a [u8],
}

/// An attempt to deliver an event.
#[derive(Debug, Clone)]
pub struct WebhookDelivery {
    /// Its id, which tells when it was made.
    pub id: Uuid,
    /// Name of the event.
    pub event_type: String,
    /// Id of the event, `evt_…`.
    pub event_id: String,
    /// Status of the answer; 0 where there was none.
    pub status_code: i32,
    /// Why it failed; `None` where it did not.
    pub error: Option<String>,
    /// Which one it was for its event, from 1.
    pub attempt: i32,
    /// How long it took, milliseconds.
    pub duration_ms: i32,
}

impl WebhookDelivery {
    /// When it was made.
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
            attempt: row.try_get("attempt")?,
            duration_ms: row.try_get("duration_ms")?,
        }))
    }
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
    /// Makes a webhook, unless its tenant has as many as it may.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn create_webhook(
        &self,
        new: NewWebhook<'_>,
        now: Timestamp,
    ) -> Result<CreateOutcome, StoreError> {
        let word: String =
            sqlx::query_scalar("/* create_webhook */ SELECT create_webhook($1, $2, $3, $4, $5, $6)")
                .bind(new.id)
                .bind(new.tenant)
                .bind(new.url)
                .bind(new.events)
                .bind(new.secret)
                .bind(now.to_sqlx())
                .fetch_one(self.pool())
                .await?;
        CreateOutcome::from_word("create_webhook", &word)
    }

    /// A page (from 1, 30 webhooks) of a tenant's webhooks, newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_webhooks(&self, tenant: Uuid, page: i64) -> Result<Vec<Webhook>, StoreError> {
        let rows = sqlx::query(
            "/* list_webhooks */
            SELECT id, url, events, status, failure_count, last_triggered_at, created_at FROM webhook
            WHERE tenant = $1 ORDER BY created_at DESC, id DESC OFFSET $2 LIMIT $3",
        )
        .bind(tenant)
        .bind(rows_before(page))
        .bind(PAGE_SIZE)
        .fetch_all(self.pool())
        .await?;
        rows.iter().map(Webhook::from_row).collect()
    }

    /// Deletes a webhook of a tenant: nothing is sent to it any more, and its attempts are listed
    /// nowhere.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn delete_webhook(
        &self,
        tenant: Uuid,
        id: Uuid,
    ) -> Result<Result<(), ChangeError>, StoreError> {
        let managed_by: Option<String> = sqlx::query_scalar(
            "/* delete_webhook */
            WITH found AS (
                SELECT id, managed_by FROM webhook WHERE id = $1 AND tenant = $2 FOR UPDATE
            ), deleted AS (
                DELETE FROM webhook w USING found f WHERE w.id = f.id AND f.managed_by = 'api'
            )
            SELECT managed_by FROM found",
        )
        .bind(id)
        .bind(tenant)
        .fetch_optional(self.pool())
        .await?;
        ChangeError::unless_changed(managed_by.as_deref(), "webhook", id)
    }

    /// Gives a webhook of a tenant another secret (sealed for it) and forgets its failures, also
    /// those of attempts under way; its status stays, and what waits is due at once.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn rotate_webhook_secret(
        &self,
        tenant: Uuid,
        id: Uuid,
        secret: &[u8],
        now: Timestamp,
    ) -> Result<Result<(), ChangeError>, StoreError> {
        let managed_by: Option<String> = sqlx::query_scalar(
            "/* rotate_webhook_secret */
            WITH found AS (
                SELECT id, managed_by FROM webhook WHERE id = $1 AND tenant = $2 FOR NO KEY UPDATE
            ), rotated AS (
                UPDATE webhook w SET secret = $3, failure_count = 0, failed_at = $4, due_at = '-infinity'
                FROM found f WHERE w.id = f.id AND f.managed_by = 'api'
            )
            SELECT managed_by FROM found",
        )
        .bind(id)
        .bind(tenant)
        .bind(secret)
        .bind(now.to_sqlx())
        .fetch_optional(self.pool())
        .await?;
        ChangeError::unless_changed(managed_by.as_deref(), "webhook", id)
    }

    /// The last `limit` attempts of a tenant's webhook within [`DELIVERY_RETENTION`], newest first;
    /// `None` where the tenant has no such webhook.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_webhook_deliveries(
        &self,
        tenant: Uuid,
        webhook: Uuid,
        limit: i64,
        now: Timestamp,
    ) -> Result<Option<Vec<WebhookDelivery>>, StoreError> {
        // A webhook without attempts is one row of nulls.
        let rows = sqlx::query(
            "/* list_webhook_deliveries */
            SELECT a.* FROM webhook w
            LEFT JOIN LATERAL (
                SELECT * FROM webhook_delivery d WHERE d.webhook = w.id AND d.id >= $3
                ORDER BY d.id DESC LIMIT $4
            ) a ON true
            WHERE w.id = $1 AND w.tenant = $2
            ORDER BY a.id DESC",
        )
        .bind(webhook)
        .bind(tenant)
        .bind(lowest_id(now - DELIVERY_RETENTION))
        .bind(limit)
        .fetch_all(self.pool())
        .await?;
        if rows.is_empty() {
            return Ok(None);
        }
        rows.iter()
            .filter_map(|row| WebhookDelivery::from_row(row).transpose())
            .collect::<Result<_, _>>()
            .map(Some)
    }
}
