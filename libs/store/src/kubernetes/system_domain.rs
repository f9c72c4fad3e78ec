//! System domains as Kubernetes objects declare them.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tempmail_model::id::new_id;
use uuid::Uuid;

use super::cluster::Epoch;
use super::resource::{DeclareResult, declare_result};
use crate::domains::system::SystemDomainRemoval;
use crate::error::StoreError;
use crate::pool::Store;

/// The system domain that an object declares.
#[derive(Debug, Clone, Copy)]
pub struct SystemDomainDeclaration<'a> {
    /// Its name, as A-labels.
    pub name: &'a str,
    /// Whether addresses without a mailbox receive mail.
    pub shared_inboxes: bool,
    /// Position in the list, ascending.
    pub sort_order: i32,
    /// Whether it becomes the default domain; `false` changes nothing.
    pub default: bool,
}

/// The system domain of an object. It serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ManagedSystemDomain {
    /// Its id.
    pub id: Uuid,
    /// Whether it is the default domain.
    pub is_default: bool,
    /// Position in the list, ascending.
    pub sort_order: i32,
    /// Whether addresses without a mailbox receive mail.
    pub shared_inboxes: bool,
}

impl ManagedSystemDomain {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.try_get("id")?,
            is_default: row.try_get("is_default")?,
            sort_order: row.try_get("sort_order")?,
            shared_inboxes: row.try_get("shared_inboxes")?,
        })
    }
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
        let statement = sqlx::query(
            "/* find_managed_system_domain */
            SELECT d.id, d.is_default, d.sort_order, d.shared_inboxes
            FROM resource r JOIN domain d ON d.id = r.row_id WHERE r.uid = $1 AND d.serves",
        );
        self.fetch_optional(statement.bind(uid), ManagedSystemDomain::from_row).await
    }

    /// Makes the system domain of the object `uid` serve and match the object; adopts one that serves and has no
    /// object.
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
        let statement = epoch.statement(
            "/* declare_system_domain */ SELECT declare_system_domain($1, $2, $3, $4, $5, $6, $7, $8)",
            uid,
        );
        let statement = statement
            .bind(new_id(now))
            .bind(domain.name)
            .bind(domain.shared_inboxes)
            .bind(domain.sort_order)
            .bind(domain.default)
            .bind(now.to_sqlx());
        self.fetch_one(statement, |row| declare_result("declare_system_domain", row)).await
    }

    /// Takes the object's system domain out of service and releases it, unless the removal is refused.
    /// [`SystemDomainRemoval::NotFound`]: the object has none.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing happened.
    pub async fn release_system_domain(
        &self,
        epoch: Epoch,
        uid: Uuid,
        now: Timestamp,
    ) -> Result<SystemDomainRemoval, StoreError> {
        let statement = epoch.statement(
            "/* release_system_domain */
            SELECT o_outcome, o_mailboxes FROM release_system_domain($1, $2, $3)",
            uid,
        );
        self.fetch_one(statement.bind(now.to_sqlx()), |row| {
            SystemDomainRemoval::from_row("release_system_domain", row)
        })
        .await
    }
}
