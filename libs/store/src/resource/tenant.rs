//! Tenants as objects declare them.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use tempmail_model::id::new_id;
use tempmail_model::retention::RetentionClass;
use uuid::Uuid;

use super::{DeclareResult, Epoch, declare_result};
use crate::{Store, StoreError};

/// What an object says of its tenant.
#[derive(Debug, Clone, Copy)]
pub struct TenantDeclaration<'a> {
    /// The tenant's name.
    pub name: &'a str,
    /// A tenant that is to be taken over instead of making one, if the object has none yet.
    pub adopt: Option<Uuid>,
    /// Whether it is refused everywhere.
    pub suspended: bool,
    /// Retention of its mail from now on.
    pub retention: RetentionClass,
    /// Mailboxes.
    pub mailboxes: i32,
    /// Custom domains.
    pub domains: i32,
    /// Webhooks.
    pub webhooks: i32,
    /// API tokens.
    pub tokens: i32,
    /// Octets of mailboxes made from now on.
    pub mailbox_bytes: i64,
}

impl Store {
    /// Makes the tenant of the object `uid` what the object says.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn declare_tenant(
        &self,
        epoch: Epoch,
        uid: Uuid,
        tenant: TenantDeclaration<'_>,
        now: Timestamp,
    ) -> Result<DeclareResult, StoreError> {
        let word: String = sqlx::query_scalar(
            "/* declare_tenant */
            SELECT declare_tenant($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
        )
        .bind(epoch.0)
        .bind(uid)
        .bind(new_id(now))
        .bind(tenant.name)
        .bind(tenant.adopt)
        .bind(tenant.suspended)
        .bind(tenant.retention.hours())
        .bind(tenant.mailboxes)
        .bind(tenant.domains)
        .bind(tenant.webhooks)
        .bind(tenant.tokens)
        .bind(tenant.mailbox_bytes)
        .bind(now.to_sqlx())
        .fetch_one(self.pool())
        .await?;
        declare_result("declare_tenant", &word)
    }

    /// Releases the tenant of the object `uid`: it is suspended under a name that leaves its own
    /// free (`retained`), or removed with all it has, the addresses of its mailboxes on system
    /// domains held for `hold_days`.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing happened.
    pub async fn release_tenant(
        &self,
        epoch: Epoch,
        uid: Uuid,
        retained: bool,
        now: Timestamp,
        hold_days: u16,
    ) -> Result<(), StoreError> {
        sqlx::query("/* release_tenant */ SELECT release_tenant($1, $2, $3, $4, $5)")
            .bind(epoch.0)
            .bind(uid)
            .bind(retained)
            .bind(now.to_sqlx())
            .bind(i32::from(hold_days))
            .execute(self.pool())
            .await?;
        Ok(())
    }
}
