//! Tenants: made, changed, suspended and removed; and what goes with mail of none.

use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tempmail_model::id::new_id;
use tempmail_model::retention::RetentionClass;
use uuid::Uuid;

use crate::change::ManagedBy;
use crate::row::time;
use crate::{Store, StoreError};

/// What a new tenant may have.
#[derive(Debug, Clone)]
pub struct TenantDefaults {
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
    /// Octets of a mailbox.
    pub mailbox_bytes: i64,
}

impl TenantDefaults {
    /// The Pro plan with this retention.
    pub fn pro(retention: RetentionClass) -> Self {
        Self { retention, mailboxes: 100, domains: 10, webhooks: 1, tokens: 20, mailbox_bytes: 52_428_800 }
    }
}

/// How much of something a tenant has, of how much it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitUsage {
    /// What there is.
    pub used: i64,
    /// What new ones are refused at.
    pub limit: i32,
}

/// A tenant with what it has.
#[derive(Debug, Clone)]
pub struct Tenant {
    /// Its id.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// Whether it is refused everywhere.
    pub suspended: bool,
    /// Retention of its new mail.
    pub retention: RetentionClass,
    /// Mailboxes.
    pub mailboxes: LimitUsage,
    /// Custom domains.
    pub domains: LimitUsage,
    /// Webhooks.
    pub webhooks: LimitUsage,
    /// API tokens that are neither revoked nor expired.
    pub tokens: LimitUsage,
    /// Octets of a new mailbox.
    pub mailbox_bytes: i64,
    /// Octets of mail that it has; what is expiring or being deleted just now counts.
    pub stored_bytes: i64,
    /// Who may change it: whoever administers the installation, or its resource.
    pub managed_by: ManagedBy,
    /// When it was made.
    pub created_at: Timestamp,
}

/// What to change of a tenant; `None` leaves it as it is.
#[derive(Debug, Clone, Copy, Default)]
pub struct TenantChange {
    /// Retention of mail from now on.
    pub retention: Option<RetentionClass>,
    /// Mailboxes.
    pub mailboxes: Option<i32>,
    /// Custom domains.
    pub domains: Option<i32>,
    /// Webhooks.
    pub webhooks: Option<i32>,
    /// API tokens.
    pub tokens: Option<i32>,
    /// Octets of mailboxes made from now on.
    pub mailbox_bytes: Option<i64>,
}

impl Tenant {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        let id = row.try_get("id")?;
        let share = |used, limit| -> Result<LimitUsage, StoreError> {
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
            mailboxes: share("mailboxes", "mailbox_limit")?,
            domains: share("domains", "domain_limit")?,
            webhooks: share("webhooks", "webhook_limit")?,
            tokens: share("tokens", "token_limit")?,
            mailbox_bytes: row.try_get("mailbox_bytes")?,
            stored_bytes: row.try_get("stored_bytes")?,
            managed_by: ManagedBy::from_word(row.try_get("managed_by")?, "tenant", id)?,
            created_at: time(row, "created_at")?,
        })
    }
}

/// Tenants that are not removed, with what they have. Binds $1 now.
macro_rules! tenants {
    () => {
        "SELECT t.*, (SELECT k.bytes FROM scope_used(t.id, $1) k) AS stored_bytes,
                (SELECT count(*) FROM mailbox b WHERE b.tenant = t.id AND b.removed_at IS NULL) AS mailboxes,
                (SELECT count(*) FROM domain d WHERE d.tenant = t.id AND d.removed_at IS NULL) AS domains,
                (SELECT count(*) FROM webhook w WHERE w.tenant = t.id) AS webhooks,
                (SELECT count(*) FROM api_token k WHERE k.tenant = t.id AND k.revoked_at IS NULL
                    AND (k.expires_at IS NULL OR k.expires_at > $1)) AS tokens
         FROM tenant t WHERE t.removed_at IS NULL"
    };
}

impl Store {
    /// The tenants, by name.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_tenants(&self, now: Timestamp) -> Result<Vec<Tenant>, StoreError> {
        let rows = sqlx::query(concat!("/* list_tenants */ ", tenants!(), " ORDER BY t.name"))
            .bind(now.to_sqlx())
            .fetch_all(self.pool())
            .await?;
        rows.iter().map(Tenant::from_row).collect()
    }

    /// The tenant of this name.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_tenant(&self, name: &str, now: Timestamp) -> Result<Option<Tenant>, StoreError> {
        let row = sqlx::query(concat!("/* find_tenant */ ", tenants!(), " AND t.name = $2"))
            .bind(now.to_sqlx())
            .bind(name)
            .fetch_optional(self.pool())
            .await?;
        row.as_ref().map(Tenant::from_row).transpose()
    }

    /// The tenant of this id.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_tenant_by_id(&self, id: Uuid, now: Timestamp) -> Result<Option<Tenant>, StoreError> {
        let row = sqlx::query(concat!("/* find_tenant_by_id */ ", tenants!(), " AND t.id = $2"))
            .bind(now.to_sqlx())
            .bind(id)
            .fetch_optional(self.pool())
            .await?;
        row.as_ref().map(Tenant::from_row).transpose()
    }

    /// Makes a tenant; `false` where the name is taken.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn create_tenant(
        &self,
        name: &str,
        defaults: &TenantDefaults,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let made = sqlx::query(
            "/* create_tenant */
            INSERT INTO tenant (id, name, retention_hours, classes, mailbox_limit, domain_limit,
                                webhook_limit, token_limit, mailbox_bytes, created_at)
            VALUES ($1, $2, $3, ARRAY[$3], $4, $5, $6, $7, $8, $9)
            ON CONFLICT (name) DO NOTHING",
        )
        .bind(new_id(now))
        .bind(name)
        .bind(defaults.retention.hours())
        .bind(defaults.mailboxes)
        .bind(defaults.domains)
        .bind(defaults.webhooks)
        .bind(defaults.tokens)
        .bind(defaults.mailbox_bytes)
        .bind(now.to_sqlx())
        .execute(self.pool())
        .await?;
        Ok(made.rows_affected() > 0)
    }

    /// The id of the tenant `name`, which is made where it is missing; one that is there stays
    /// as it is.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn ensure_tenant(
        &self,
        name: &str,
        defaults: &TenantDefaults,
        now: Timestamp,
    ) -> Result<Uuid, StoreError> {
        self.create_tenant(name, defaults, now).await?;
        let id = sqlx::query_scalar("/* ensure_tenant */ SELECT id FROM tenant WHERE name = $1")
            .bind(name)
            .fetch_one(self.pool())
            .await?;
        Ok(id)
    }

    /// Changes a tenant; `false` where it is gone. A retention is added to those that its mail
    /// is looked for in.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn change_tenant(&self, id: Uuid, change: TenantChange) -> Result<bool, StoreError> {
        let changed = sqlx::query(
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
        .bind(change.mailbox_bytes)
        .execute(self.pool())
        .await?;
        Ok(changed.rows_affected() > 0)
    }

    /// Refuses a tenant everywhere, or lets it in again; `false` where it is gone.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn set_tenant_suspended(&self, id: Uuid, suspended: bool) -> Result<bool, StoreError> {
        let changed = sqlx::query(
            "/* set_tenant_suspended */ UPDATE tenant SET suspended = $2 WHERE id = $1 AND removed_at IS NULL",
        )
        .bind(id)
        .bind(suspended)
        .execute(self.pool())
        .await?;
        Ok(changed.rows_affected() > 0)
    }

    /// Removes a tenant with all it has: refused everywhere at once, its name free, its mail
    /// purged by the worker. Addresses of its mailboxes on system domains are held for
    /// `hold_days`, for nobody. `false` where it is gone already, or is `platform`.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing of it happened.
    pub async fn remove_tenant(&self, id: Uuid, now: Timestamp, hold_days: u16) -> Result<bool, StoreError> {
        Ok(sqlx::query_scalar("/* remove_tenant */ SELECT remove_tenant($1, $2, $3)")
            .bind(id)
            .bind(now.to_sqlx())
            .bind(i32::from(hold_days))
            .fetch_one(self.pool())
            .await?)
    }

    /// Forgets the removed tenants of which nothing is left. Returns how many.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn delete_removed_tenants(&self) -> Result<u64, StoreError> {
        let deleted = sqlx::query(
            "/* delete_removed_tenants */
            DELETE FROM tenant t
            WHERE t.removed_at IS NOT NULL
              AND NOT EXISTS (SELECT FROM domain d WHERE d.tenant = t.id)
              AND NOT EXISTS (SELECT FROM mailbox b WHERE b.tenant = t.id)",
        )
        .execute(self.pool())
        .await?;
        Ok(deleted.rows_affected())
    }

    /// Notes a retention that mail without a tenant has (`retention.free_hours`): reads look in
    /// every class that was ever noted. Each role that accepts or reads mail notes its own.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn record_free_class(&self, class: RetentionClass) -> Result<(), StoreError> {
        sqlx::query(
            "/* record_free_class */
            INSERT INTO free_class (class) SELECT $1 WHERE NOT EXISTS (SELECT FROM free_class WHERE class = $1)
            ON CONFLICT DO NOTHING",
        )
        .bind(class.hours())
        .execute(self.pool())
        .await?;
        Ok(())
    }

    /// How far Postgres' clock is ahead of `local`, which tells the time of this machine. The
    /// answer is right to half of the round trip, the second value.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn clock_offset(
        &self,
        local: impl Fn() -> Timestamp + Send,
    ) -> Result<(SignedDuration, SignedDuration), StoreError> {
        let mut connection = self.pool().acquire().await?;
        let asked = local();
        let there: jiff_sqlx::Timestamp = sqlx::query_scalar("/* clock_offset */ SELECT clock_timestamp()")
            .fetch_one(&mut *connection)
            .await?;
        let round_trip = local().duration_since(asked);
        let middle = asked + round_trip / 2;
        Ok((there.to_jiff().duration_since(middle), round_trip))
    }
}
