//! Tenants as Kubernetes objects declare them.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use tempmail_model::id::new_id;
use uuid::Uuid;

use super::cluster::Epoch;
use super::resource::{DeclareResult, declare_result};
use crate::error::StoreError;
use crate::pool::Store;
use crate::tenants::TenantLimits;

/// The tenant that an object declares.
#[derive(Debug, Clone, Copy)]
pub struct TenantDeclaration<'a> {
    /// Its name.
    pub name: &'a str,
    /// A tenant to adopt instead of creating one, if the object has none yet, or one that has nothing.
    pub adopt: Option<Uuid>,
    /// Whether all of its requests and mail are refused.
    pub suspended: bool,
    /// Its retention and limits.
    pub limits: TenantLimits,
}

impl Store {
    /// Creates or changes the tenant of the object `uid` so that it matches the object.
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
        let statement = epoch.statement(
            "/* declare_tenant */
            SELECT declare_tenant($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
            uid,
        );
        let statement = statement
            .bind(new_id(now))
            .bind(tenant.name)
            .bind(tenant.adopt)
            .bind(tenant.suspended)
            .bind(tenant.limits.retention.hours())
            .bind(tenant.limits.mailboxes)
            .bind(tenant.limits.domains)
            .bind(tenant.limits.webhooks)
            .bind(tenant.limits.tokens)
            .bind(tenant.limits.mailbox_bytes)
            .bind(now.to_sqlx());
        self.fetch_one(statement, |row| declare_result("declare_tenant", row)).await
    }

    /// Whether the tenant `id` of an object gives way to the tenant `adopt`: it has nothing, and `adopt` has no object.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn tenant_gives_way(&self, id: Uuid, adopt: Uuid, now: Timestamp) -> Result<bool, StoreError> {
        let statement = sqlx::query("/* tenant_gives_way */ SELECT gives_way($1, $2, $3)");
        self.fetch_value(statement.bind(id).bind(adopt).bind(now.to_sqlx())).await
    }

    /// Releases the tenant of the object `uid`: it is suspended under another name, so that its own is free
    /// (`retained`), or removed with all that it has. The addresses of its mailboxes on system domains are then
    /// held for `hold_days`.
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
        let statement =
            epoch.statement("/* release_tenant */ SELECT release_tenant($1, $2, $3, $4, $5)", uid);
        self.execute(statement.bind(retained).bind(now.to_sqlx()).bind(i32::from(hold_days))).await
    }
}
