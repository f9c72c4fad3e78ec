//! Mailboxes as Kubernetes objects declare them.

use std::fmt;

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tempmail_model::id::new_id;
use uuid::Uuid;

use super::cluster::{Epoch, fenced};
use super::resource::{DeclareResult, declare_result};
use crate::error::StoreError;
use crate::pool::Store;

/// The mailbox that an object declares.
#[derive(Debug, Clone, Copy)]
pub struct MailboxDeclaration<'a> {
    /// Its tenant.
    pub tenant: Uuid,
    /// Name of its domain, as A-labels.
    pub domain: &'a str,
    /// Its local part.
    pub local_part: &'a str,
    /// PHC string of a password that is not yet delivered to its owner.
    pub password_hash: &'a str,
    /// Whether to adopt a mailbox that the tenant created over HTTP.
    pub adopt: bool,
    /// Value of the annotation that requested this new password.
    pub rotate_requested: Option<&'a str>,
}

/// The mailbox of an object.
#[derive(Clone)]
pub struct ManagedMailbox {
    /// Its id.
    pub id: Uuid,
    /// Its tenant.
    pub tenant: Option<Uuid>,
    /// Whether sign-in is permitted.
    pub active: bool,
    /// PHC string.
    pub password_hash: String,
}

impl fmt::Debug for ManagedMailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagedMailbox")
            .field("id", &self.id)
            .field("active", &self.active)
            .finish_non_exhaustive()
    }
}

impl ManagedMailbox {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.try_get("id")?,
            tenant: row.try_get("tenant")?,
            active: row.try_get("active")?,
            password_hash: row.try_get("password_hash")?,
        })
    }
}

impl Store {
    /// The mailbox of the object `uid`, of any tenant.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_managed_mailbox(&self, uid: Uuid) -> Result<Option<ManagedMailbox>, StoreError> {
        let statement = sqlx::query(
            "/* find_managed_mailbox */
            SELECT b.id, b.tenant, b.active, b.password_hash
            FROM resource r JOIN mailbox b ON b.id = r.row_id WHERE r.uid = $1 AND b.removed_at IS NULL",
        );
        self.fetch_optional(statement.bind(uid), ManagedMailbox::from_row).await
    }

    /// Sets another password of the mailbox of the object `uid`; creates the mailbox first where there is none.
    /// Sign-in is refused until it is [activated](Self::activate_mailbox).
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn declare_mailbox(
        &self,
        epoch: Epoch,
        uid: Uuid,
        mailbox: MailboxDeclaration<'_>,
        now: Timestamp,
    ) -> Result<DeclareResult, StoreError> {
        let statement = epoch.statement(
            "/* declare_mailbox */ SELECT declare_mailbox($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            uid,
        );
        let statement = statement
            .bind(new_id(now))
            .bind(mailbox.tenant)
            .bind(mailbox.domain)
            .bind(mailbox.local_part)
            .bind(mailbox.password_hash)
            .bind(mailbox.adopt)
            .bind(mailbox.rotate_requested)
            .bind(now.to_sqlx());
        self.fetch_one(statement, |row| declare_result("declare_mailbox", row)).await
    }

    /// Permits sign-in to the object's mailbox: the password of this hash is delivered to its owner. Does
    /// nothing if the mailbox has another password by now.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn activate_mailbox(
        &self,
        epoch: Epoch,
        uid: Uuid,
        password_hash: &str,
    ) -> Result<(), StoreError> {
        let statement = epoch.statement(
            fenced!(
                "/* activate_mailbox */",
                " UPDATE mailbox b SET active = true FROM resource r
                  WHERE (SELECT locked FROM epoch) AND r.uid = $2 AND b.id = r.row_id AND b.removed_at IS NULL
                    AND b.password_hash = $3"
            ),
            uid,
        );
        self.execute(statement.bind(password_hash)).await
    }

    /// Refuses sign-in to the object's mailbox and revokes its JWTs, because its object is no longer accepted.
    /// Its mail stays.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn deactivate_mailbox(&self, epoch: Epoch, uid: Uuid) -> Result<(), StoreError> {
        self.execute(epoch.statement(
            fenced!(
                "/* deactivate_mailbox */",
                " UPDATE mailbox b SET active = false, password_epoch = b.password_epoch + 1 FROM resource r
                  WHERE (SELECT locked FROM epoch) AND r.uid = $2 AND b.id = r.row_id AND b.active
                    AND b.removed_at IS NULL"
            ),
            uid,
        ))
        .await
    }

    /// Releases the object's mailbox: its tenant manages it over HTTP from now on (`retained`), or it is removed
    /// with its mail, and its address on a system domain held for `hold_days`. Unless one of the Tenants `granting`, by
    /// uid, declares its tenant, which is not suspended, it is the tenant's, inactive and without a password instead.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing happened.
    pub async fn release_mailbox(
        &self,
        epoch: Epoch,
        uid: Uuid,
        retained: bool,
        granting: &[Uuid],
        now: Timestamp,
        hold_days: u16,
    ) -> Result<(), StoreError> {
        let statement =
            epoch.statement("/* release_mailbox */ SELECT release_mailbox($1, $2, $3, $4, $5, $6)", uid);
        let statement = statement.bind(retained).bind(granting).bind(now.to_sqlx());
        self.execute(statement.bind(i32::from(hold_days))).await
    }
}
