//! Tenants: created, changed, suspended and removed. Their tokens, and mailboxes: those of tenants and free ones.

pub(crate) mod mailbox;
pub(crate) mod minted_token;
pub(crate) mod pro_mailbox;
pub(crate) mod token;

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tempmail_model::id::new_id;
use tempmail_model::retention::RetentionClass;
use uuid::Uuid;

use crate::error::StoreError;
use crate::pool::Store;
use crate::row::{ManagedBy, time};

/// The retention and the limits of a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TenantLimits {
    /// Retention of its mail.
    pub retention: RetentionClass,
    /// Mailboxes.
    pub mailboxes: i32,
    /// Custom domains.
    pub domains: i32,
    /// Webhooks.
    pub webhooks: i32,
    /// API tokens.
    pub tokens: i32,
    /// Bytes of each new mailbox.
    pub mailbox_bytes: i64,
}

impl TenantLimits {
    /// Those of the Pro plan, with this retention.
    pub fn pro(retention: RetentionClass) -> Self {
        Self { retention, mailboxes: 100, domains: 10, webhooks: 1, tokens: 20, mailbox_bytes: 52_428_800 }
    }
}

/// How many of something a tenant has, and may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitUsage {
    /// How many it has.
    pub used: i64,
    /// How many it may have.
    pub limit: i32,
}

/// A tenant and its usage.
#[derive(Debug, Clone)]
pub struct Tenant {
    /// UUIDv7: it tells when the row was created.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// Whether all of its requests and mail are refused.
    pub suspended: bool,
    /// Retention of new mail.
    pub retention: RetentionClass,
    /// Mailboxes.
    pub mailboxes: LimitUsage,
    /// Custom domains.
    pub domains: LimitUsage,
    /// Webhooks.
    pub webhooks: LimitUsage,
    /// API tokens that are neither revoked nor expired.
    pub tokens: LimitUsage,
    /// Bytes of each new mailbox.
    pub mailbox_bytes: i64,
    /// Bytes of its mail, including mail that is just expiring or being deleted.
    pub stored_bytes: i64,
    /// Who may change it.
    pub managed_by: ManagedBy,
    /// When it was created.
    pub created_at: Timestamp,
}

/// What to change of a tenant; `None` changes nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct TenantChange {
    /// Retention of new mail.
    pub retention: Option<RetentionClass>,
    /// Mailboxes.
    pub mailboxes: Option<i32>,
    /// Custom domains.
    pub domains: Option<i32>,
    /// Webhooks.
    pub webhooks: Option<i32>,
    /// API tokens.
    pub tokens: Option<i32>,
    /// Bytes of each new mailbox.
    pub mailbox_bytes: Option<i64>,
}

impl Tenant {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        let id = row.try_get("id")?;
        let usage = |used, limit| -> Result<LimitUsage, StoreError> {
            Ok(LimitUsage { used: row.try_get(used)?, limit: row.try_get(limit)? })
        };
        let retention = RetentionClass::try_from(row.try_get::<i16, _>("retention_hours")?);
        Ok(Self {
            id,
            name: row.try_get("name")?,
            suspended: row.try_get("suspended")?,
            retention: retention.map_err(|_unknown| StoreError::Inconsistent {
                table: "tenant",
                column: "retention_hours",
                id,
            })?,
            mailboxes: usage("mailboxes", "mailbox_limit")?,
            domains: usage("domains", "domain_limit")?,
            webhooks: usage("webhooks", "webhook_limit")?,
            tokens: usage("tokens", "token_limit")?,
            mailbox_bytes: row.try_get("mailbox_bytes")?,
            stored_bytes: row.try_get("stored_bytes")?,
            managed_by: ManagedBy::from_word(row.try_get("managed_by")?, "tenant", id)?,
            created_at: time(row, "created_at")?,
        })
    }
}

/// SQL for the tenants that are not removed, with their usage. Binds $1 now.
macro_rules! tenants {
    () => {
        "SELECT t.id, t.name, t.suspended, t.retention_hours, t.mailbox_limit, t.domain_limit, t.webhook_limit,
                t.token_limit, t.mailbox_bytes, t.managed_by, t.created_at,
                (SELECT k.bytes FROM scope_used(t.id, $1) k) AS stored_bytes,
                (SELECT count(*) FROM mailbox b WHERE b.tenant = t.id AND b.removed_at IS NULL) AS mailboxes,
                (SELECT count(*) FROM domain d WHERE d.tenant = t.id AND d.removed_at IS NULL) AS domains,
                (SELECT count(*) FROM webhook w WHERE w.tenant = t.id) AS webhooks,
                (SELECT count(*) FROM api_token k WHERE k.tenant = t.id AND k.revoked_at IS NULL
                    AND (k.expires_at IS NULL OR k.expires_at > $1)) AS tokens
         FROM tenant t WHERE t.removed_at IS NULL"
    };
}

impl Store {
    /// All tenants, ordered by name.
    pub async fn list_tenants(&self, now: Timestamp) -> Result<Vec<Tenant>, StoreError> {
        self.fetch_all(
            sqlx::query(concat!("/* list_tenants */ ", tenants!(), " ORDER BY t.name")).bind(now.to_sqlx()),
            Tenant::from_row,
        )
        .await
    }

    /// The tenant of this name.
    pub async fn find_tenant(&self, name: &str, now: Timestamp) -> Result<Option<Tenant>, StoreError> {
        self.fetch_optional(
            sqlx::query(concat!("/* find_tenant */ ", tenants!(), " AND t.name = $2"))
                .bind(now.to_sqlx())
                .bind(name),
            Tenant::from_row,
        )
        .await
    }

    /// The tenant of this id.
    pub async fn find_tenant_by_id(&self, id: Uuid, now: Timestamp) -> Result<Option<Tenant>, StoreError> {
        self.fetch_optional(
            sqlx::query(concat!("/* find_tenant_by_id */ ", tenants!(), " AND t.id = $2"))
                .bind(now.to_sqlx())
                .bind(id),
            Tenant::from_row,
        )
        .await
    }

    /// Whether there is a tenant of this name that is suspended.
    pub async fn is_tenant_suspended(&self, name: &str) -> Result<bool, StoreError> {
        self.fetch_value(
            sqlx::query(
                "/* is_tenant_suspended */
                 SELECT EXISTS (SELECT FROM tenant WHERE name = $1 AND removed_at IS NULL AND suspended)",
            )
            .bind(name),
        )
        .await
    }

    /// Creates a tenant; `false` where the name is taken.
    pub async fn create_tenant(
        &self,
        name: &str,
        limits: &TenantLimits,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        Ok(self
            .affected_rows(
                sqlx::query(
                    "/* create_tenant */
            INSERT INTO tenant (id, name, retention_hours, classes, mailbox_limit, domain_limit,
                                webhook_limit, token_limit, mailbox_bytes, created_at)
            VALUES ($1, $2, $3, ARRAY[$3], $4, $5, $6, $7, $8, $9)
            ON CONFLICT (name) DO NOTHING",
                )
                .bind(new_id(now))
                .bind(name)
                .bind(limits.retention.hours())
                .bind(limits.mailboxes)
                .bind(limits.domains)
                .bind(limits.webhooks)
                .bind(limits.tokens)
                .bind(limits.mailbox_bytes)
                .bind(now.to_sqlx()),
            )
            .await?
            > 0)
    }

    /// The id of the tenant `name`, which is created with `limits` if it does not exist.
    pub async fn ensure_tenant(
        &self,
        name: &str,
        limits: &TenantLimits,
        now: Timestamp,
    ) -> Result<Uuid, StoreError> {
        self.create_tenant(name, limits, now).await?;
        let id = self
            .fetch_value(sqlx::query("/* ensure_tenant */ SELECT id FROM tenant WHERE name = $1").bind(name))
            .await?;
        Ok(id)
    }

    /// Makes a tenant the owner of what sinks over this database receive; at most one tenant is.
    pub async fn make_sink(&self, id: Uuid) -> Result<(), StoreError> {
        // One statement for both would meet the unique index between the two rows.
        self.execute(
            sqlx::query("/* make_sink */ UPDATE tenant SET is_sink = NULL WHERE is_sink AND id <> $1")
                .bind(id),
        )
        .await?;
        self.execute(
            sqlx::query("/* make_sink */ UPDATE tenant SET is_sink = true WHERE is_sink IS NULL AND id = $1")
                .bind(id),
        )
        .await
    }

    /// Changes a tenant; `false` where it is removed. A new retention is added to those that reads look in.
    pub async fn change_tenant(&self, id: Uuid, change: TenantChange) -> Result<bool, StoreError> {
        Ok(self
            .affected_rows(
                sqlx::query(
                    "/* change_tenant */
            UPDATE tenant
            SET retention_hours = coalesce($2, retention_hours),
                classes = CASE WHEN coalesce($2, retention_hours) = ANY (classes) THEN classes
                               ELSE array_append(classes, $2) END,
                mailbox_limit = coalesce($3, mailbox_limit), domain_limit = coalesce($4, domain_limit),
                webhook_limit = coalesce($5, webhook_limit), token_limit = coalesce($6, token_limit),
                mailbox_bytes = coalesce($7, mailbox_bytes)
            WHERE id = $1 AND removed_at IS NULL",
                )
                .bind(id)
                .bind(change.retention.map(RetentionClass::hours))
                .bind(change.mailboxes)
                .bind(change.domains)
                .bind(change.webhooks)
                .bind(change.tokens)
                .bind(change.mailbox_bytes),
            )
            .await?
            > 0)
    }

    /// Suspends a tenant, or ends its suspension; `false` where it is removed.
    pub async fn set_tenant_suspended(&self, id: Uuid, suspended: bool) -> Result<bool, StoreError> {
        Ok(self.affected_rows(sqlx::query(
            "/* set_tenant_suspended */ UPDATE tenant SET suspended = $2 WHERE id = $1 AND removed_at IS NULL",
        )
        .bind(id)
        .bind(suspended)).await? > 0)
    }

    /// Removes a tenant with all that it has: its requests and mail are refused and its name is free at once, its mail
    /// is deleted by the worker. The addresses of its mailboxes on system domains are held for `hold_days`, and no
    /// tenant can have them meanwhile. `false` where it is removed already, or is `platform`.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing happened.
    pub async fn remove_tenant(&self, id: Uuid, now: Timestamp, hold_days: u16) -> Result<bool, StoreError> {
        self.fetch_value(
            sqlx::query("/* remove_tenant */ SELECT remove_tenant($1, $2, $3)")
                .bind(id)
                .bind(now.to_sqlx())
                .bind(i32::from(hold_days)),
        )
        .await
    }

    /// Deletes the rows of removed tenants whose domains and mailboxes are deleted. Returns how many.
    pub async fn delete_removed_tenants(&self) -> Result<u64, StoreError> {
        self.affected_rows(sqlx::query(
            "/* delete_removed_tenants */
            DELETE FROM tenant t
            WHERE t.removed_at IS NOT NULL
              AND NOT EXISTS (SELECT FROM domain d WHERE d.tenant = t.id)
              AND NOT EXISTS (SELECT FROM mailbox b WHERE b.tenant = t.id)",
        ))
        .await
    }
}
