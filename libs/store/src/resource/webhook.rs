//! Webhooks as objects declare them.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use uuid::Uuid;

use super::{DeclareResult, Epoch, declare_result};
use crate::webhook::NewWebhook;
use crate::{Store, StoreError};

/// A webhook that an object has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagedWebhook {
    /// Its id.
    pub id: Uuid,
    /// Whose it is.
    pub tenant: Uuid,
    /// Where its events go.
    pub url: String,
    /// Its secret, sealed for it alone.
    pub secret: Vec<u8>,
    /// Whether its owner has the secret; nothing is sent before.
    pub active: bool,
    /// Whether it failed too often in a row.
    pub disabled: bool,
}

/// What an object says of a webhook to be created.
#[derive(Debug, Clone, Copy)]
pub struct WebhookDeclaration<'a> {
    /// The webhook.
    pub webhook: NewWebhook<'a>,
    /// Value of the annotation that requests another secret, carried out by the creation.
    pub rotate_requested: Option<&'a str>,
    /// Value of the annotation that requests to enable a disabled webhook, carried out by the creation.
    pub reenable_requested: Option<&'a str>,
}

impl Store {
    /// The webhook of the object `uid`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_managed_webhook(&self, uid: Uuid) -> Result<Option<ManagedWebhook>, StoreError> {
        let row = sqlx::query(
            "/* find_managed_webhook */
            SELECT w.id, w.tenant, w.url, w.secret, w.active, w.status = 'disabled' AS disabled
            FROM resource r JOIN webhook w ON w.id = r.row_id WHERE r.uid = $1",
        )
        .bind(uid)
        .fetch_optional(self.pool())
        .await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(ManagedWebhook {
            id: row.try_get("id")?,
            tenant: row.try_get("tenant")?,
            url: row.try_get("url")?,
            secret: row.try_get("secret")?,
            active: row.try_get("active")?,
            disabled: row.try_get("disabled")?,
        }))
    }

    /// Makes the webhook of the object `uid`, inactive. One that it has already is deleted, and does
    /// not count.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn declare_webhook(
        &self,
        epoch: Epoch,
        uid: Uuid,
        declaration: WebhookDeclaration<'_>,
        now: Timestamp,
    ) -> Result<DeclareResult, StoreError> {
        let new = declaration.webhook;
        let word: String = sqlx::query_scalar(
            "/* declare_webhook */ SELECT declare_webhook($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        )
        .bind(epoch.0)
        .bind(uid)
        .bind(new.id)
        .bind(new.tenant)
        .bind(new.url)
        .bind(new.events)
        .bind(new.secret)
        .bind(declaration.rotate_requested)
        .bind(declaration.reenable_requested)
        .bind(now.to_sqlx())
        .fetch_one(self.pool())
        .await?;
        declare_result("declare_webhook", &word)
    }

    /// Activates the webhook `id`, whose owner has the secret, if it is the object's still.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn activate_webhook(&self, epoch: Epoch, uid: Uuid, id: Uuid) -> Result<(), StoreError> {
        sqlx::query(under_epoch!(
            "/* activate_webhook */",
            " UPDATE webhook w SET active = true FROM resource r
              WHERE (SELECT held FROM epoch) AND r.uid = $2 AND r.row_id = $3 AND w.id = $3"
        ))
        .bind(epoch.0)
        .bind(uid)
        .bind(id)
        .execute(self.pool())
        .await?;
        Ok(())
    }

    /// Sets the URL of the object's webhook.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn set_webhook_url(&self, epoch: Epoch, uid: Uuid, url: &str) -> Result<(), StoreError> {
        sqlx::query(under_epoch!(
            "/* set_webhook_url */",
            " UPDATE webhook w SET url = $3 FROM resource r
              WHERE (SELECT held FROM epoch) AND r.uid = $2 AND w.id = r.row_id"
        ))
        .bind(epoch.0)
        .bind(uid)
        .bind(url)
        .execute(self.pool())
        .await?;
        Ok(())
    }

    /// Gives the object's webhook another secret (sealed for it), which its owner does not have yet,
    /// forgets its failures, those of attempts under way included, and records what `requested` for it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn rotate_managed_webhook(
        &self,
        epoch: Epoch,
        uid: Uuid,
        secret: &[u8],
        requested: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        sqlx::query(under_epoch!(
            "/* rotate_managed_webhook */",
            ", handled AS (
                UPDATE resource SET rotate_handled = $4 WHERE (SELECT held FROM epoch) AND uid = $2
              )
              UPDATE webhook w
              SET secret = $3, active = false, failure_count = 0, failed_at = $5, due_at = '-infinity'
              FROM resource r WHERE (SELECT held FROM epoch) AND r.uid = $2 AND w.id = r.row_id"
        ))
        .bind(epoch.0)
        .bind(uid)
        .bind(secret)
        .bind(requested)
        .bind(now.to_sqlx())
        .execute(self.pool())
        .await?;
        Ok(())
    }

    /// Records `requested` as handled: the object's webhook was not disabled.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn record_reenable_handled(
        &self,
        epoch: Epoch,
        uid: Uuid,
        requested: &str,
    ) -> Result<(), StoreError> {
        sqlx::query(under_epoch!(
            "/* record_reenable_handled */",
            " UPDATE resource SET reenable_handled = $3 WHERE (SELECT held FROM epoch) AND uid = $2"
        ))
        .bind(epoch.0)
        .bind(uid)
        .bind(requested)
        .execute(self.pool())
        .await?;
        Ok(())
    }

    /// Deletes the webhook of an object that is no longer accepted.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn remove_managed_webhook(&self, epoch: Epoch, uid: Uuid) -> Result<(), StoreError> {
        sqlx::query(under_epoch!(
            "/* remove_managed_webhook */",
            ", withdrawn AS (
                UPDATE resource SET row_id = NULL WHERE (SELECT held FROM epoch) AND uid = $2
              )
              DELETE FROM webhook w USING resource r
              WHERE (SELECT held FROM epoch) AND r.uid = $2 AND w.id = r.row_id"
        ))
        .bind(epoch.0)
        .bind(uid)
        .execute(self.pool())
        .await?;
        Ok(())
    }

    /// Deletes the webhook of an object that is deleted, and forgets the object.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing happened.
    pub async fn release_webhook(&self, epoch: Epoch, uid: Uuid) -> Result<(), StoreError> {
        sqlx::query(under_epoch!(
            "/* release_webhook */",
            ", released AS (
                DELETE FROM resource WHERE (SELECT held FROM epoch) AND uid = $2
              )
              DELETE FROM webhook w USING resource r
              WHERE (SELECT held FROM epoch) AND r.uid = $2 AND w.id = r.row_id"
        ))
        .bind(epoch.0)
        .bind(uid)
        .execute(self.pool())
        .await?;
        Ok(())
    }
}
