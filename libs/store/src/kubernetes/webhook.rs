//! Webhooks as Kubernetes objects declare them.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::cluster::{Epoch, activate_row, fenced};
use super::resource::{DeclareResult, declare_result};
use crate::error::StoreError;
use crate::pool::Store;
use crate::webhooks::NewWebhook;

/// The webhook of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagedWebhook {
    /// Its id.
    pub id: Uuid,
    /// Its tenant.
    pub tenant: Uuid,
    /// The URL that its events are sent to.
    pub url: String,
    /// Its secret, sealed for it alone.
    pub secret: Vec<u8>,
    /// Whether its secret is delivered to its owner; nothing is sent before.
    pub active: bool,
    /// Whether it failed too often in a row.
    pub disabled: bool,
}

/// A webhook to create for an object.
#[derive(Debug, Clone, Copy)]
pub struct WebhookDeclaration<'a> {
    /// The webhook.
    pub webhook: NewWebhook<'a>,
    /// Value of the annotation that requested another secret, handled by the creation.
    pub rotate_requested: Option<&'a str>,
    /// Value of the annotation that requested re-enabling a webhook, handled by the creation.
    pub reenable_requested: Option<&'a str>,
}

impl ManagedWebhook {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.try_get("id")?,
            tenant: row.try_get("tenant")?,
            url: row.try_get("url")?,
            secret: row.try_get("secret")?,
            active: row.try_get("active")?,
            disabled: row.try_get("disabled")?,
        })
    }
}

impl Store {
    /// The webhook of the object `uid`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_managed_webhook(&self, uid: Uuid) -> Result<Option<ManagedWebhook>, StoreError> {
        let statement = sqlx::query(
            "/* find_managed_webhook */
            SELECT w.id, w.tenant, w.url, w.secret, w.active, w.status = 'disabled' AS disabled
            FROM resource r JOIN webhook w ON w.id = r.row_id WHERE r.uid = $1",
        );
        self.fetch_optional(statement.bind(uid), ManagedWebhook::from_row).await
    }

    /// Creates the webhook of the object `uid`, inactive. The webhook that it replaces is deleted, and does not
    /// count towards the limit.
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
        let webhook = declaration.webhook;
        let statement = epoch.statement(
            "/* declare_webhook */ SELECT declare_webhook($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            uid,
        );
        let statement = statement
            .bind(webhook.id)
            .bind(webhook.tenant)
            .bind(webhook.url)
            .bind(webhook.events)
            .bind(webhook.secret)
            .bind(declaration.rotate_requested)
            .bind(declaration.reenable_requested)
            .bind(now.to_sqlx());
        self.fetch_one(statement, |row| declare_result("declare_webhook", row)).await
    }

    /// Activates the webhook `id`, whose secret is delivered to its owner, if it is still the object's.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn activate_webhook(&self, epoch: Epoch, uid: Uuid, id: Uuid) -> Result<(), StoreError> {
        let statement = epoch.statement(activate_row!("/* activate_webhook */", "webhook"), uid);
        self.execute(statement.bind(id)).await
    }

    /// Sets the URL of the object's webhook.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn set_webhook_url(&self, epoch: Epoch, uid: Uuid, url: &str) -> Result<(), StoreError> {
        let statement = epoch.statement(
            fenced!(
                "/* set_webhook_url */",
                " UPDATE webhook w SET url = $3 FROM resource r
                  WHERE (SELECT locked FROM epoch) AND r.uid = $2 AND w.id = r.row_id"
            ),
            uid,
        );
        self.execute(statement.bind(url)).await
    }

    /// Sets another secret (sealed) of the object's webhook, which is not yet delivered to its owner, resets its
    /// failures, those of attempts in flight included, and records `requested` as handled.
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
        let statement = epoch.statement(
            fenced!(
                "/* rotate_managed_webhook */",
                ", handled AS (
                    UPDATE resource SET rotate_handled = $4 WHERE (SELECT locked FROM epoch) AND uid = $2
                  )
                  UPDATE webhook w
                  SET secret = $3, active = false, failure_count = 0, failed_at = $5, due_at = '-infinity',
                      rotated = true
                  FROM resource r WHERE (SELECT locked FROM epoch) AND r.uid = $2 AND w.id = r.row_id"
            ),
            uid,
        );
        self.execute(statement.bind(secret).bind(requested).bind(now.to_sqlx())).await
    }

    /// Records `requested` as handled without an effect: the object's webhook was not disabled.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn record_reenable_handled(
        &self,
        epoch: Epoch,
        uid: Uuid,
        requested: &str,
    ) -> Result<(), StoreError> {
        let statement = epoch.statement(
            fenced!(
                "/* record_reenable_handled */",
                " UPDATE resource SET reenable_handled = $3 WHERE (SELECT locked FROM epoch) AND uid = $2"
            ),
            uid,
        );
        self.execute(statement.bind(requested)).await
    }

    /// Deletes the webhook of an object that is no longer accepted.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn remove_managed_webhook(&self, epoch: Epoch, uid: Uuid) -> Result<(), StoreError> {
        self.execute(epoch.statement(
            fenced!(
                "/* remove_managed_webhook */",
                ", unlinked AS (
                    UPDATE resource SET row_id = NULL WHERE (SELECT locked FROM epoch) AND uid = $2
                  )
                  DELETE FROM webhook w USING resource r
                  WHERE (SELECT locked FROM epoch) AND r.uid = $2 AND w.id = r.row_id"
            ),
            uid,
        ))
        .await
    }

    /// Deletes the webhook of an object that is deleted, and the object's row.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing happened.
    pub async fn release_webhook(&self, epoch: Epoch, uid: Uuid) -> Result<(), StoreError> {
        let statement = epoch.statement("/* release_webhook */ SELECT release_webhook($1, $2)", uid);
        self.execute(statement).await
    }
}
