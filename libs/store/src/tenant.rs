//! Tenants, and what goes with mail of none.

use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::ToSqlx as _;
use tempmail_model::id::new_id;
use tempmail_model::retention::RetentionClass;
use uuid::Uuid;

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

impl Store {
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
        sqlx::query(
            "/* ensure_tenant */
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
        let id = sqlx::query_scalar("/* ensure_tenant */ SELECT id FROM tenant WHERE name = $1")
            .bind(name)
            .fetch_one(self.pool())
            .await?;
        Ok(id)
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
