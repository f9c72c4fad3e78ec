//! Mailboxes: created, found, signed in to and removed.
//!
//! A removed mailbox keeps its row until its mail is deleted and its address is free, because the deletion lowers the
//! usage of its tenant. Where the address is free at once (on a custom domain, or for the tenant that had it), the
//! row takes a local part that no address has.

use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use crate::error::StoreError;
use crate::pool::Store;
use crate::row::time;

/// A mailbox whose domain serves.
#[derive(Debug, Clone)]
pub struct Mailbox {
    /// UUIDv7: it tells when the row was created.
    pub id: Uuid,
    /// Its domain.
    pub domain: Uuid,
    /// `local-part@domain`.
    pub address: String,
    /// Whose it is; `None` for a free one.
    pub tenant: Option<Uuid>,
    /// Whether its tenant is suspended.
    pub suspended: bool,
    /// Bytes that it may hold.
    pub quota: i64,
    /// The password epoch that its valid JWTs carry.
    pub password_epoch: i64,
    /// When it was created.
    pub created_at: Timestamp,
    /// The last sign-in or read, to the hour.
    pub seen_at: Timestamp,
    /// Whether a Kubernetes object manages it.
    pub managed_by_kubernetes: bool,
}

/// A mailbox to create.
#[derive(Debug, Clone, Copy)]
pub struct NewMailbox<'a> {
    /// A new UUIDv7, which the caller makes.
    pub id: Uuid,
    /// Its domain.
    pub domain: Uuid,
    /// Its local part.
    pub local_part: &'a str,
    /// Whose it will be; `None` for a free one.
    pub tenant: Option<Uuid>,
    /// Bytes that a free mailbox may hold; the tenant decides for its own.
    pub free_quota: i64,
    /// How many free mailboxes there may be, with a free one.
    pub free_limit: i64,
    /// PHC string.
    pub password_hash: &'a str,
}

/// What has an address: a mailbox, or a hold for one that was removed.
#[derive(Debug, Clone)]
pub struct AddressHolder {
    /// The mailbox, which may be removed.
    pub mailbox: Uuid,
    /// Its password hash (PHC string), if it may be created again with its password.
    pub password_hash: Option<String>,
}

/// A free mailbox to create again.
#[derive(Debug, Clone, Copy)]
pub struct MailboxRecreation {
    /// A new UUIDv7, which the caller makes.
    pub id: Uuid,
    /// The removed one, for which the address is held.
    pub former: Uuid,
    /// Bytes that it may hold.
    pub quota: i64,
    /// How many free mailboxes there may be, with it.
    pub free_limit: i64,
}

/// What came of creating a mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailboxCreation {
    /// It was created.
    Created,
    /// The address is in use or held.
    AddressTaken,
    /// The tenant has reached its limit.
    LimitReached,
    /// There are as many free mailboxes as there may be.
    FreeLimitReached,
    /// The domain does not serve, or not this tenant.
    NoSuchDomain,
    /// The tenant is suspended or removed.
    TenantDisabled,
}

impl MailboxCreation {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        match row.try_get(0)? {
            "created" => Ok(Self::Created),
            "address_taken" => Ok(Self::AddressTaken),
            "limit_reached" => Ok(Self::LimitReached),
            "free_limit_reached" => Ok(Self::FreeLimitReached),
            "tenant_disabled" => Ok(Self::TenantDisabled),
            "no_such_domain" => Ok(Self::NoSuchDomain),
            word => Err(StoreError::unknown_word("create_mailbox", word)),
        }
    }
}

/// Whether a tenant may have one more of a thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitCheck {
    /// It may.
    Passed,
    /// It has reached its limit.
    Reached,
    /// It is suspended or removed.
    TenantDisabled,
}

impl LimitCheck {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        match row.try_get(0)? {
            None => Ok(Self::Passed),
            Some("limit_reached") => Ok(Self::Reached),
            Some("tenant_disabled") => Ok(Self::TenantDisabled),
            Some(word) => Err(StoreError::unknown_word("check_limit", word)),
        }
    }
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

/// SQL for a mailbox that may be signed in to, with its domain and tenant.
macro_rules! serving_mailbox {
    () => {
        "SELECT b.id, b.domain, b.local_part || '@' || d.name AS address, b.tenant,
                coalesce(t.suspended, false) AS suspended, b.quota, b.password_hash, b.password_epoch,
                b.created_at, b.seen_at, b.managed_by = 'kubernetes' AS managed_by_kubernetes
         FROM mailbox b
         JOIN domain d ON d.id = b.domain AND d.serves
         LEFT JOIN tenant t ON t.id = b.tenant
         WHERE b.removed_at IS NULL AND b.active AND "
    };
}

impl Store {
    /// A mailbox that is not removed, may be signed in to, and whose domain serves.
    pub async fn find_mailbox(&self, id: Uuid) -> Result<Option<Mailbox>, StoreError> {
        self.fetch_optional(
            sqlx::query(concat!("/* find_mailbox */ ", serving_mailbox!(), "b.id = $1")).bind(id),
            Mailbox::from_row,
        )
        .await
    }

    /// The mailbox of an address with its password hash (PHC string), if it may be signed in to.
    pub async fn find_mailbox_to_sign_in(
        &self,
        local_part: &str,
        domain: &str,
    ) -> Result<Option<(Mailbox, String)>, StoreError> {
        let statement = sqlx::query(concat!(
            "/* find_mailbox_to_sign_in */ ",
            serving_mailbox!(),
            "b.local_part = $1 AND d.name = $2"
        ))
        .bind(local_part)
        .bind(domain);
        self.fetch_optional(statement, |row| Ok((Mailbox::from_row(row)?, row.try_get("password_hash")?)))
            .await
    }

    /// Records a sign-in or read of a mailbox, unless the last recorded one is less than `step` ago.
    pub async fn touch_mailbox(
        &self,
        id: Uuid,
        now: Timestamp,
        step: SignedDuration,
    ) -> Result<(), StoreError> {
        self.execute(
            sqlx::query(
                "/* touch_mailbox */ UPDATE mailbox SET seen_at = $2 WHERE id = $1 AND seen_at <= $3",
            )
            .bind(id)
            .bind(now.to_sqlx())
            .bind((now - step).to_sqlx()),
        )
        .await
    }

    /// Bytes of the unexpired messages of a mailbox.
    pub async fn mailbox_used(&self, id: Uuid, now: Timestamp) -> Result<i64, StoreError> {
        self.fetch_value(
            sqlx::query("/* mailbox_used */ SELECT mailbox_used($1, $2)").bind(id).bind(now.to_sqlx()),
        )
        .await
    }

    /// Creates a mailbox. Locks its tenant first, so that its limit holds.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing was created.
    pub async fn create_mailbox(
        &self,
        new: NewMailbox<'_>,
        now: Timestamp,
    ) -> Result<MailboxCreation, StoreError> {
        let statement = sqlx::query(
            "/* create_mailbox */ SELECT create_mailbox($1, $2, $3, $4, $5, $6, $7, 'api', true, $8)",
        )
        .bind(new.id)
        .bind(new.domain)
        .bind(new.local_part)
        .bind(new.tenant)
        .bind(new.free_quota)
        .bind(new.free_limit)
        .bind(new.password_hash)
        .bind(now.to_sqlx());
        self.fetch_one(statement, MailboxCreation::from_row).await
    }

    /// What has an address of a domain at `now`; `None` where the address is free.
    pub async fn find_address_holder(
        &self,
        domain: Uuid,
        local_part: &str,
        now: Timestamp,
    ) -> Result<Option<AddressHolder>, StoreError> {
        let statement = sqlx::query(
            "/* find_address_holder */
            SELECT id, CASE WHEN restorable AND tenant IS NULL THEN password_hash END AS password_hash FROM mailbox
            WHERE domain = $1 AND local_part = $2 AND (removed_at IS NULL OR held_until > $3)",
        )
        .bind(domain)
        .bind(local_part)
        .bind(now.to_sqlx());
        self.fetch_optional(statement, |row| {
            Ok(AddressHolder { mailbox: row.try_get("id")?, password_hash: row.try_get("password_hash")? })
        })
        .await
    }

    /// Creates a free mailbox again while its address is held for it, with the password of the former one.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing was created.
    pub async fn recreate_mailbox(
        &self,
        new: MailboxRecreation,
        now: Timestamp,
    ) -> Result<MailboxCreation, StoreError> {
        let statement = sqlx::query("/* recreate_mailbox */ SELECT recreate_mailbox($1, $2, $3, $4, $5)")
            .bind(new.id)
            .bind(new.former)
            .bind(new.quota)
            .bind(new.free_limit)
            .bind(now.to_sqlx());
        self.fetch_one(statement, MailboxCreation::from_row).await
    }

    /// How many free mailboxes there are, by a count that is kept.
    pub async fn count_free_mailboxes(&self) -> Result<i64, StoreError> {
        self.fetch_value(sqlx::query("/* count_free_mailboxes */ SELECT free FROM mailbox_count")).await
    }

    /// Whether a tenant may have one more mailbox now. Only [`create_mailbox`](Self::create_mailbox) decides: another
    /// one may be created meanwhile.
    pub async fn check_mailbox_limit(&self, tenant: Uuid, now: Timestamp) -> Result<LimitCheck, StoreError> {
        let statement = sqlx::query("/* check_mailbox_limit */ SELECT check_limit($1, 'mailbox', $2)")
            .bind(tenant)
            .bind(now.to_sqlx());
        self.fetch_one(statement, LimitCheck::from_row).await
    }

    /// Removes a mailbox: hidden at once, its mail deleted by the worker. On a system domain its address is held for
    /// `hold_days`. `false` where it is removed already, or a Kubernetes object manages it.
    ///
    /// One statement, so that its lock on the stream, which it takes last to wait for the mail in flight, does not
    /// outlive this process.
    pub async fn remove_mailbox(&self, id: Uuid, now: Timestamp, hold_days: u16) -> Result<bool, StoreError> {
        self.fetch_value(
            sqlx::query("/* remove_mailbox */ SELECT remove_mailbox($1, 'api', $2, $3)")
                .bind(id)
                .bind(now.to_sqlx())
                .bind(i32::from(hold_days)),
        )
        .await
    }
}

/// Mailboxes that one statement removes or deletes at most.
pub const CLEANUP_BATCH: i64 = 100;

impl Store {
    /// Removes up to [`CLEANUP_BATCH`] free mailboxes that were last seen before `idle_since`, as `DELETE /api/me`
    /// does: hidden at once, the mail deleted by the worker, the address held for `hold_days` from `now`. Returns
    /// how many.
    pub async fn remove_idle_mailboxes(
        &self,
        idle_since: Timestamp,
        now: Timestamp,
        hold_days: u16,
    ) -> Result<u64, StoreError> {
        let removed: i64 = self
            .fetch_value(
                sqlx::query(
                    "/* remove_idle_mailboxes */ SELECT remove_idle_mailboxes($1, $2::integer, $3, $4)",
                )
                .bind(idle_since.to_sqlx())
                .bind(CLEANUP_BATCH)
                .bind(now.to_sqlx())
                .bind(i32::from(hold_days)),
            )
            .await?;
        Ok(removed.unsigned_abs())
    }

    /// Erases the passwords of removed mailboxes whose address is no longer held: they can't be created again.
    /// Returns how many.
    pub async fn erase_released_passwords(&self, now: Timestamp) -> Result<u64, StoreError> {
        let statement = sqlx::query(
            "/* erase_released_passwords */
            UPDATE mailbox SET password_hash = '!', restorable = false
            WHERE removed_at IS NOT NULL AND held_until <= $1 AND restorable",
        );
        self.affected_rows(statement.bind(now.to_sqlx())).await
    }

    /// Deletes the rows of up to [`CLEANUP_BATCH`] removed mailboxes whose address is no longer held and whose mail
    /// is deleted (which needs the row until then). Returns how many.
    pub async fn delete_released_mailboxes(&self, now: Timestamp) -> Result<u64, StoreError> {
        self.affected_rows(
            sqlx::query(
                "/* delete_released_mailboxes */
            DELETE FROM mailbox WHERE removed_at IS NOT NULL AND held_until <= $1 AND id IN (
                SELECT b.id FROM mailbox b
                WHERE b.removed_at IS NOT NULL AND b.held_until <= $1
                  AND NOT EXISTS (SELECT FROM purge p WHERE p.inbox = b.id)
                ORDER BY b.held_until LIMIT $2 FOR UPDATE SKIP LOCKED)",
            )
            .bind(now.to_sqlx())
            .bind(CLEANUP_BATCH),
        )
        .await
    }
}
