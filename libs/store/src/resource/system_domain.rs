//! System domains as objects declare them.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use tempmail_model::id::new_id;
use uuid::Uuid;

use super::{DeclareResult, Epoch, declare_result};
use crate::system_domain::SystemDomainRemoval;
use crate::{Store, StoreError};

/// What an object says of its system domain.
#[derive(Debug, Clone, Copy)]
pub struct SystemDomainDeclaration<'a> {
    /// Its name, as A-labels.
    pub name: &'a str,
    /// Whether its addresses receive without a mailbox.
    pub shared_inboxes: bool,
    /// Place in the list, ascending.
    pub sort_order: i32,
    /// Whether it becomes the default one; `false` leaves that as it is.
    pub default: bool,
}

/// The system domain of an object. It serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ManagedSystemDomain {
    /// Its id.
    pub id: Uuid,
    /// Whether it is the default one.
    pub is_default: bool,
    /// Place in the list, ascending.
    pub sort_order: i32,
    /// Whether its addresses receive without a mailbox.
    pub shared_inboxes: bool,
}

impl Store {
    /// The system domain of the object `uid`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_managed_system_domain(
        &self,
        uid: Uuid,
    ) -> Result<Option<ManagedSystemDomain>, StoreError> {
        let row = sqlx::query(
            "/* find_managed_system_domain */
            SELECT d.id, d.is_default, d.sort_order, d.shared_inboxes
            FROM resource r JOIN domain d ON d.id = r.row_id WHERE r.uid = $1 AND d.serves",
        )
        .bind(uid)
        .fetch_optional(self.pool())
        .await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(ManagedSystemDomain {
            id: row.try_get("id")?,
            is_default: row.try_get("is_default")?,
            sort_order: row.try_get("sort_order")?,
            shared_inboxes: row.try_get("shared_inboxes")?,
        }))
    }

    /// Makes the system domain of the object `uid` serve, and what the object says; one that serves
    /// and has no object is taken over.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn declare_system_domain(
        &self,
        epoch: Epoch,
        uid: Uuid,
        domain: SystemDomainDeclaration<'_>,
        now: Timestamp,
    ) -> Result<DeclareResult, StoreError> {
        let word: String = sqlx::query_scalar(
            "/* declare_system_domain */ SELECT declare_system_domain($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind(epoch.0)
        .bind(uid)
        .bind(new_id(now))
        .bind(domain.name)
        .bind(domain.shared_inboxes)
        .bind(domain.sort_order)
        .bind(domain.default)
        .bind(now.to_sqlx())
        .fetch_one(self.pool())
        .await?;
        declare_result("declare_system_domain", &word)
    }

    /// Takes the object's system domain out of service and releases it, unless something keeps it in
    /// service. [`SystemDomainRemoval::NotFound`]: the object has none.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing happened.
    pub async fn release_system_domain(
        &self,
        epoch: Epoch,
        uid: Uuid,
        now: Timestamp,
    ) -> Result<SystemDomainRemoval, StoreError> {
        let row = sqlx::query(
            "/* release_system_domain */
            SELECT o_outcome, o_mailboxes FROM release_system_domain($1, $2, $3)",
        )
        .bind(epoch.0)
        .bind(uid)
        .bind(now.to_sqlx())
        .fetch_one(self.pool())
        .await?;
        SystemDomainRemoval::from_row("release_system_domain", &row)
    }
}
