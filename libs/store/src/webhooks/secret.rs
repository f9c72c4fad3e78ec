//! The sealed secrets of webhooks, for those who seal them again with another key.

use sqlx::Row as _;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use crate::error::StoreError;
use crate::pool::Store;

/// A row that has changed since it was read keeps its secret, such as one that was rotated. One that is locked by another
/// statement is left out: several workers never wait for each other.
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
    ///
    /// # Errors
    /// [`StoreError`].
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
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn reseal_webhook_secrets(&self, secrets: &[ResealedWebhookSecret]) -> Result<u64, StoreError> {
        let statement = sqlx::query(RESEAL_WEBHOOK_SECRETS)
            .bind(secrets.iter().map(|secret| secret.former.webhook).collect::<Vec<_>>())
            .bind(secrets.iter().map(|secret| secret.former.sealed.as_slice()).collect::<Vec<_>>())
            .bind(secrets.iter().map(|secret| secret.resealed.as_slice()).collect::<Vec<_>>());
        self.affected_rows(statement).await
    }
}
