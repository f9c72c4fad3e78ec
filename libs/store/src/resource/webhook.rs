//! Webhooks as objects declare them.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use uuid::Uuid;

use super::{Declaration, Epoch, declaration};
use crate::webhook::NewWebhook;
use crate::{Store, StoreError};

/// A webhook that an object has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredWebhook {
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

/// Values of annotations that are carried out along with a webhook's creation.
#[derive(Debug, Clone, Copy, Default)]
pub struct WebhookAsked<'a> {
    /// That asks for a new secret.
    pub rotate: Option<&'a str>,
    /// That asks for a disabled one to be made again.
    pub reenable: Option<&'a str>,
}

impl Store {
    /// The webhook of the object `uid`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_declared_webhook(&self, uid: Uuid) -> Result<Option<DeclaredWebhook>, StoreError> {
        let row = sqlx::query(
            "/* find_declared_webhook */
            SELECT w.id, w.tenant, w.url, w.secret, w.active, w.status = 'disabled' AS disabled
            FROM resource r JOIN webhook w ON w.id = r.thing WHERE r.uid = $1",
        )
        .bind(uid)
        .fetch_optional(self.pool())
        .await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(DeclaredWebhook {
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
        new: NewWebhook<'_>,
        asked: WebhookAsked<'_>,
        now: Timestamp,
    ) -> Result<Declaration, StoreError> {
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
        .bind(asked.rotate)
        .bind(asked.reenable)
        .bind(now.to_sqlx())
        .fetch_one(self.pool())
        .await?;
        declaration(&word, uid)
    }

    /// From now on events are sent to the object's webhook `id`, whose owner has the secret.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn activate_webhook(&self, epoch: Epoch, uid: Uuid, id: Uuid) -> Result<(), StoreError> {
        sqlx::query("/* activate_webhook */ SELECT activate_webhook($1, $2, $3)")
            .bind(epoch.0)
            .bind(uid)
            .bind(id)
            .execute(self.pool())
            .await?;
        Ok(())
    }

    /// Says where the object's webhook leads.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn set_webhook_url(&self, epoch: Epoch, uid: Uuid, url: &str) -> Result<(), StoreError> {
        sqlx::query("/* set_webhook_url */ SELECT set_webhook_url($1, $2, $3)")
            .bind(epoch.0)
            .bind(uid)
            .bind(url)
            .execute(self.pool())
            .await?;
        Ok(())
    }

    /// Gives the object's webhook another secret (sealed for it), which its owner does not have yet,
    /// forgets its failures, and notes what `asked` for it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn rotate_declared_webhook(
        &self,
        epoch: Epoch,
        uid: Uuid,
        secret: &[u8],
        asked: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        sqlx::query("/* rotate_declared_webhook */ SELECT rotate_declared_webhook($1, $2, $3, $4, $5)")
            .bind(epoch.0)
            .bind(uid)
            .bind(secret)
            .bind(asked)
            .bind(now.to_sqlx())
            .execute(self.pool())
            .await?;
        Ok(())
    }

    /// Notes that the object's webhook was not disabled when `asked` was said.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn disregard_reenable(&self, epoch: Epoch, uid: Uuid, asked: &str) -> Result<(), StoreError> {
        sqlx::query("/* disregard_reenable */ SELECT disregard_reenable($1, $2, $3)")
            .bind(epoch.0)
            .bind(uid)
            .bind(asked)
            .execute(self.pool())
            .await?;
        Ok(())
    }

    /// Deletes the webhook of an object that is not accepted any more.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn withdraw_webhook(&self, epoch: Epoch, uid: Uuid) -> Result<(), StoreError> {
        sqlx::query("/* withdraw_webhook */ SELECT withdraw_webhook($1, $2)")
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
    pub async fn release_declared_webhook(&self, epoch: Epoch, uid: Uuid) -> Result<(), StoreError> {
        sqlx::query("/* release_declared_webhook */ SELECT release_declared_webhook($1, $2)")
            .bind(epoch.0)
            .bind(uid)
            .execute(self.pool())
            .await?;
        Ok(())
    }
}
