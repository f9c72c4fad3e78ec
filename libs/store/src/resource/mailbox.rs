//! Mailboxes as objects declare them.

use std::fmt;

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use tempmail_model::id::new_id;
use uuid::Uuid;

use super::{DeclareResult, Epoch, declare_result};
use crate::{Store, StoreError};

/// What an object says of its mailbox.
#[derive(Debug, Clone, Copy)]
pub struct MailboxDeclaration<'a> {
    /// Whose it is.
    pub tenant: Uuid,
    /// Name of its domain, as A-labels.
    pub domain: &'a str,
    /// Its local part.
    pub local_part: &'a str,
    /// PHC string of a password that is not yet delivered to its owner.
    pub password_hash: &'a str,
    /// Whether one that the tenant made over HTTP is taken over.
    pub adopt: bool,
    /// Value of the annotation that asks for a new password, which this one is.
    pub rotate_requested: Option<&'a str>,
}

/// The mailbox of an object.
#[derive(Clone)]
pub struct ManagedMailbox {
    /// Its id.
    pub id: Uuid,
    /// Whose it is.
    pub tenant: Option<Uuid>,
    /// Whether it may be signed in to.
    pub active: bool,
    /// PHC string.
    pub password_hash: String,
}

impl fmt::Debug for ManagedMailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagedMailbox").field("id", &self.id).field("active", &self.active).finish()
    }
}

impl Store {
    /// The mailbox of the object `uid`, of any tenant.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_managed_mailbox(&self, uid: Uuid) -> Result<Option<ManagedMailbox>, StoreError> {
        let row = sqlx::query(
            "/* find_managed_mailbox */
            SELECT b.id, b.tenant, b.active, b.password_hash
            FROM resource r JOIN mailbox b ON b.id = r.row_id WHERE r.uid = $1 AND b.removed_at IS NULL",
        )
        .bind(uid)
        .fetch_optional(self.pool())
        .await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(ManagedMailbox {
            id: row.try_get("id")?,
            tenant: row.try_get("tenant")?,
            active: row.try_get("active")?,
            password_hash: row.try_get("password_hash")?,
        }))
    }

    /// Gives the mailbox of the object `uid` another password, and makes the mailbox first where
    /// there is none. Sign-in is refused until it is [activated](Self::activate_mailbox).
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
        let word: String = sqlx::query_scalar(
            "/* declare_mailbox */ SELECT declare_mailbox($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        )
        .bind(epoch.0)
        .bind(uid)
        .bind(new_id(now))
        .bind(mailbox.tenant)
        .bind(mailbox.domain)
        .bind(mailbox.local_part)
        .bind(mailbox.password_hash)
        .bind(mailbox.adopt)
        .bind(mailbox.rotate_requested)
        .bind(now.to_sqlx())
        .fetch_one(self.pool())
        .await?;
        declare_result("declare_mailbox", &word)
    }

    /// Permits sign-in to the object's mailbox: the password of this hash is delivered to its owner.
    /// A mailbox that has another password by now stays as it is.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn activate_mailbox(
        &self,
        epoch: Epoch,
        uid: Uuid,
        password_hash: &str,
    ) -> Result<(), StoreError> {
        sqlx::query(under_epoch!(
            "/* activate_mailbox */",
            " UPDATE mailbox b SET active = true FROM resource r
              WHERE (SELECT held FROM epoch) AND r.uid = $2 AND b.id = r.row_id AND b.removed_at IS NULL
                AND b.password_hash = $3"
        ))
        .bind(epoch.0)
        .bind(uid)
        .bind(password_hash)
        .execute(self.pool())
        .await?;
        Ok(())
    }

    /// Refuses sign-in to the object's mailbox and revokes its JWTs; its mail stays: its object is
    /// no longer accepted.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn deactivate_mailbox(&self, epoch: Epoch, uid: Uuid) -> Result<(), StoreError> {
        sqlx::query(under_epoch!(
            "/* deactivate_mailbox */",
            " UPDATE mailbox b SET active = false, password_epoch = b.password_epoch + 1 FROM resource r
              WHERE (SELECT held FROM epoch) AND r.uid = $2 AND b.id = r.row_id AND b.active
                AND b.removed_at IS NULL"
        ))
        .bind(epoch.0)
        .bind(uid)
        .execute(self.pool())
        .await?;
        Ok(())
    }

    /// Releases the object's mailbox: its tenant manages it over HTTP from then on (`retained`), or
    /// it is removed with its mail, its address on a system domain held for `hold_days`.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing happened.
    pub async fn release_mailbox(
        &self,
        epoch: Epoch,
        uid: Uuid,
        retained: bool,
        now: Timestamp,
        hold_days: u16,
    ) -> Result<(), StoreError> {
        sqlx::query("/* release_mailbox */ SELECT release_mailbox($1, $2, $3, $4, $5)")
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
