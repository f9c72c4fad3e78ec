//! Mailboxes: made, found, signed in to and removed.
//!
//! A removed mailbox keeps its row until its mail is gone and its address is free: the row
//! tells whose usage the deletion of its mail lowers. Where the address is free at once (on a
//! custom domain, or for the tenant that had it) the row gives up its name for one that no
//! address has.

use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::ToSqlx as _;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row as _};
use uuid::Uuid;

use crate::row::time;
use crate::{Store, StoreError};

/// A mailbox whose domain serves.
#[derive(Debug, Clone)]
pub struct Mailbox {
    /// Its id.
    pub id: Uuid,
    /// Its domain.
    pub domain: Uuid,
    /// `local-part@domain`.
    pub address: String,
    /// Whose it is; `None` for a free one.
    pub tenant: Option<Uuid>,
    /// Whether its tenant is suspended.
    pub suspended: bool,
    /// Octets it may hold.
    pub quota: i64,
    /// What its valid JWTs carry.
    pub password_epoch: i32,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last signed in to or read, to the hour.
    pub seen_at: Timestamp,
    /// Whether a Kubernetes resource manages it.
    pub managed_by_kubernetes: bool,
}

/// A mailbox to be made.
#[derive(Debug, Clone, Copy)]
pub struct NewMailbox<'a> {
    /// Its id.
    pub id: Uuid,
    /// Its domain.
    pub domain: Uuid,
    /// Its local part.
    pub local_part: &'a str,
    /// Whose it will be; `None` for a free one.
    pub tenant: Option<Uuid>,
    /// Octets a free one may hold; a tenant's may hold what the tenant says.
    pub free_quota: i64,
    /// PHC string.
    pub password_hash: &'a str,
}

/// What came of making a mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailboxCreation {
    /// It is there, and all mail from now on is its own.
    Created,
    /// The address is in use or held.
    AddressTaken,
    /// The tenant has as many mailboxes as it may.
    LimitReached,
    /// The domain serves no longer, or not this tenant.
    NoSuchDomain,
    /// The tenant is suspended or gone.
    TenantDisabled,
}

impl Mailbox {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.try_get("id")?,
            domain: row.try_get("domain")?,
            address: row.try_get("address")?,
            tenant: row.try_get("tenant")?,
            suspended: row.try_get("suspended")?,
            quota: row.try_get("quota")?,
            password_epoch: row.try_get("password_epoch")?,
            created_at: time(row, "created_at")?,
            seen_at: time(row, "seen_at")?,
            managed_by_kubernetes: row.try_get("managed_by_kubernetes")?,
        })
    }
}

/// A mailbox with its domain and tenant.
macro_rules! serving_mailbox {
    () => {
        "SELECT b.id, b.domain, b.local_part || '@' || d.name AS address, b.tenant,
                coalesce(t.suspended, false) AS suspended, b.quota, b.password_hash, b.password_epoch,
                b.created_at, b.seen_at, b.managed_by = 'kubernetes' AS managed_by_kubernetes
         FROM mailbox b
         JOIN domain d ON d.id = b.domain AND d.serves
         LEFT JOIN tenant t ON t.id = b.tenant
         WHERE b.removed_at IS NULL AND "
    };
}

impl Store {
    /// A mailbox that is not removed and whose domain serves.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_mailbox(&self, id: Uuid) -> Result<Option<Mailbox>, StoreError> {
        let row = sqlx::query(concat!("/* find_mailbox */ ", serving_mailbox!(), "b.id = $1"))
            .bind(id)
            .fetch_optional(self.pool())
            .await?;
        row.as_ref().map(Mailbox::from_row).transpose()
    }

    /// The mailbox of an address with its password hash (PHC string), to sign in.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_mailbox_to_sign_in(
        &self,
        local_part: &str,
        domain: &str,
    ) -> Result<Option<(Mailbox, String)>, StoreError> {
        let row = sqlx::query(concat!(
            "/* find_mailbox_to_sign_in */ ",
            serving_mailbox!(),
            "b.local_part = $1 AND d.name = $2"
        ))
        .bind(local_part)
        .bind(domain)
        .fetch_optional(self.pool())
        .await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some((Mailbox::from_row(&row)?, row.try_get("password_hash")?)))
    }

    /// Notes that a mailbox was signed in to or read, unless that was noted less than `step`
    /// ago.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn touch_mailbox(
        &self,
        id: Uuid,
        now: Timestamp,
        step: SignedDuration,
    ) -> Result<(), StoreError> {
        sqlx::query("/* touch_mailbox */ UPDATE mailbox SET seen_at = $2 WHERE id = $1 AND seen_at <= $3")
            .bind(id)
            .bind(now.to_sqlx())
            .bind((now - step).to_sqlx())
            .execute(self.pool())
            .await?;
        Ok(())
    }

    /// Octets of the unexpired messages of a mailbox.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn mailbox_used(&self, id: Uuid, now: Timestamp) -> Result<i64, StoreError> {
        Ok(sqlx::query_scalar("/* mailbox_used */ SELECT mailbox_used($1, $2)")
            .bind(id)
            .bind(now.to_sqlx())
            .fetch_one(self.pool())
            .await?)
    }

    /// Makes a mailbox. Locks its tenant first, so that its limit holds.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing was made.
    pub async fn create_mailbox(
        &self,
        new: NewMailbox<'_>,
        now: Timestamp,
    ) -> Result<MailboxCreation, StoreError> {
        let mut transaction = self.pool().begin().await?;
        let quota = match new.tenant {
            None => new.free_quota,
            Some(tenant) => match tenant_quota(&mut transaction, tenant).await? {
                Ok(quota) => quota,
                Err(refused) => return Ok(refused),
            },
        };
        let domain = sqlx::query(
            "/* create_mailbox */ SELECT FROM domain
            WHERE id = $1 AND serves AND (tenant IS NULL OR tenant = $2) FOR SHARE",
        )
        .bind(new.domain)
        .bind(new.tenant)
        .fetch_optional(&mut *transaction)
        .await?;
        if domain.is_none() {
            return Ok(MailboxCreation::NoSuchDomain);
        }
        release_address(&mut transaction, new, now).await?;
        let inserted = sqlx::query(
            "/* create_mailbox */
            INSERT INTO mailbox (id, domain, local_part, tenant, quota, password_hash, created_at, seen_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $7)",
        )
        .bind(new.id)
        .bind(new.domain)
        .bind(new.local_part)
        .bind(new.tenant)
        .bind(quota)
        .bind(new.password_hash)
        .bind(now.to_sqlx())
        .execute(&mut *transaction)
        .await
        .map_err(StoreError::from);
        match inserted {
            Ok(_) => {
                transaction.commit().await?;
                Ok(MailboxCreation::Created)
            }
            Err(error) if error.constraint() == Some("mailbox_address") => Ok(MailboxCreation::AddressTaken),
            Err(error) => Err(error),
        }
    }

    /// Removes a mailbox: gone at once, its mail purged by the worker under `purge`, a new id.
    /// On a system domain its address is held for `hold_days`. `false` where it is gone already, or
    /// a Kubernetes resource manages it.
    ///
    /// One statement, so that the lock on the stream, which makes `up_to_seq` cover the mail
    /// under way, outlives nobody.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn remove_mailbox(
        &self,
        id: Uuid,
        purge: Uuid,
        now: Timestamp,
        hold_days: u16,
    ) -> Result<bool, StoreError> {
        let purged = sqlx::query(
            "/* remove_mailbox */
            WITH locked AS MATERIALIZED (
                SELECT seq FROM stream FOR UPDATE
            ), removed AS (
                UPDATE mailbox b
                SET removed_at = $3, held_until = $3::timestamptz + make_interval(days => $4),
                    password_epoch = b.password_epoch + 1,
                    local_part = CASE WHEN d.tenant IS NULL THEN b.local_part ELSE '@' || b.id END
                FROM locked, domain d
                WHERE b.id = $1 AND b.removed_at IS NULL AND b.managed_by = 'api' AND d.id = b.domain
                RETURNING b.id, locked.seq
            )
            INSERT INTO purge (id, inbox, owner, address, up_to_seq)
            SELECT $2, r.id, r.id, NULL, r.seq FROM removed r",
        )
        .bind(id)
        .bind(purge)
        .bind(now.to_sqlx())
        .bind(i32::from(hold_days))
        .execute(self.pool())
        .await?;
        Ok(purged.rows_affected() > 0)
    }
}

/// Locks a tenant and says what quota its next mailbox gets, or why there is none.
async fn tenant_quota(
    connection: &mut PgConnection,
    tenant: Uuid,
) -> Result<Result<i64, MailboxCreation>, StoreError> {
    let row = sqlx::query(
        "/* tenant_quota */
        SELECT mailbox_bytes, mailbox_limit, suspended FROM tenant WHERE id = $1 FOR NO KEY UPDATE",
    )
    .bind(tenant)
    .fetch_optional(&mut *connection)
    .await?;
    let Some(row) = row else { return Ok(Err(MailboxCreation::TenantDisabled)) };
    if row.try_get("suspended")? {
        return Ok(Err(MailboxCreation::TenantDisabled));
    }
    // Counted by a statement of its own: its snapshot is younger than the lock.
    let count: i64 = sqlx::query_scalar(
        "/* tenant_quota */ SELECT count(*) FROM mailbox WHERE tenant = $1 AND removed_at IS NULL",
    )
    .bind(tenant)
    .fetch_one(connection)
    .await?;
    if count >= i64::from(row.try_get::<i32, _>("mailbox_limit")?) {
        return Ok(Err(MailboxCreation::LimitReached));
    }
    Ok(Ok(row.try_get("mailbox_bytes")?))
}

/// Takes the name from a removed mailbox whose hold is over, or whose tenant wants it back.
async fn release_address(
    connection: &mut PgConnection,
    new: NewMailbox<'_>,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "/* release_address */
        UPDATE mailbox SET local_part = '@' || id
        WHERE domain = $1 AND local_part = $2 AND removed_at IS NOT NULL
          AND (held_until <= $3 OR tenant = $4)",
    )
    .bind(new.domain)
    .bind(new.local_part)
    .bind(now.to_sqlx())
    .bind(new.tenant)
    .execute(connection)
    .await?;
    Ok(())
}
