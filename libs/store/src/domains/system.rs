//! Domains of the installation, which are system domains, and domains that serve, of whomever.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tempmail_model::id::new_id;
use uuid::Uuid;

use crate::error::StoreError;
use crate::pool::Store;
use crate::row::{ManagedBy, first_column, time};

/// A system domain that serves, with the number of its mailboxes.
#[derive(Debug, Clone)]
pub struct SystemDomainUsage {
    /// UUIDv7: it tells when the row was created.
    pub id: Uuid,
    /// Its name, as A-labels.
    pub name: String,
    /// Whether it is the default domain.
    pub is_default: bool,
    /// Position in the list, ascending.
    pub sort_order: i32,
    /// Whether addresses without a mailbox receive mail.
    pub shared_inboxes: bool,
    /// Mailboxes under it.
    pub mailboxes: i64,
    /// Who may change it.
    pub managed_by: ManagedBy,
    /// When it was created.
    pub created_at: Timestamp,
}

/// What came of adding a system domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SystemDomainAddition {
    /// It serves now. Addresses that were held when it was removed stay held.
    Added,
    /// It served already, and was not changed.
    AlreadyServes,
    /// The pending or verified custom domain of this name is equal to it, above or below it.
    Overlaps(String),
}

/// What came of removing a system domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemDomainRemoval {
    /// It no longer serves. Its addresses stay held.
    Removed,
    /// No system domain of this name serves.
    NotFound,
    /// It is the last one.
    LastOne,
    /// It is the default domain.
    IsDefault,
    /// This number of mailboxes use it.
    InUse(i64),
}

impl SystemDomainUsage {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        let id = row.try_get("id")?;
        Ok(Self {
            id,
            name: row.try_get("name")?,
            is_default: row.try_get("is_default")?,
            sort_order: row.try_get("sort_order")?,
            shared_inboxes: row.try_get("shared_inboxes")?,
            mailboxes: row.try_get("mailboxes")?,
            managed_by: ManagedBy::from_word(row.try_get("managed_by")?, "domain", id)?,
            created_at: time(row, "created_at")?,
        })
    }
}

impl SystemDomainAddition {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        if let Some(name) = row.try_get("o_overlapping")? {
            return Ok(Self::Overlaps(name));
        }
        let added: Option<Uuid> = row.try_get("o_id")?;
        Ok(if added.is_some() { Self::Added } else { Self::AlreadyServes })
    }
}

impl SystemDomainRemoval {
    /// The answer of the SQL function `function`.
    pub(crate) fn from_row(function: &'static str, row: &PgRow) -> Result<Self, StoreError> {
        Ok(match row.try_get("o_outcome")? {
            "removed" => Self::Removed,
            "not_found" => Self::NotFound,
            "last_one" => Self::LastOne,
            "is_default" => Self::IsDefault,
            "in_use" => Self::InUse(row.try_get("o_mailboxes")?),
            word => return Err(StoreError::unknown_word(function, word)),
        })
    }
}

impl Store {
    /// The system domains that serve, in their order.
    pub async fn list_system_domain_usage(&self) -> Result<Vec<SystemDomainUsage>, StoreError> {
        let statement = sqlx::query(
            "/* list_system_domain_usage */
            SELECT d.id, d.name, d.is_default, d.sort_order, d.shared_inboxes, d.created_at, d.managed_by,
                   (SELECT count(*) FROM mailbox b WHERE b.domain = d.id AND b.removed_at IS NULL) AS mailboxes
            FROM domain d WHERE d.tenant IS NULL AND d.serves ORDER BY d.sort_order, d.name",
        );
        self.fetch_all(statement, SystemDomainUsage::from_row).await
    }

    /// Makes the system domain `name` (A-labels) serve; the first one becomes the default domain. `None` keeps the
    /// value of a domain that was removed before, else it is the default: shared inboxes, and the last position.
    pub async fn add_system_domain(
        &self,
        name: &str,
        shared_inboxes: Option<bool>,
        sort_order: Option<i32>,
        now: Timestamp,
    ) -> Result<SystemDomainAddition, StoreError> {
        let statement = sqlx::query(
            "/* add_system_domain */ SELECT o_id, o_overlapping FROM add_system_domain($1, $2, $3, $4, $5)",
        )
        .bind(new_id(now))
        .bind(name)
        .bind(shared_inboxes)
        .bind(sort_order)
        .bind(now.to_sqlx());
        self.fetch_one(statement, SystemDomainAddition::from_row).await
    }

    /// Changes a system domain; `None` changes nothing. `false` where none of this name serves.
    pub async fn change_system_domain(
        &self,
        name: &str,
        shared_inboxes: Option<bool>,
        sort_order: Option<i32>,
    ) -> Result<bool, StoreError> {
        Ok(self.affected_rows(sqlx::query(
            "/* change_system_domain */
            UPDATE domain SET shared_inboxes = coalesce($2, shared_inboxes), sort_order = coalesce($3, sort_order)
            WHERE name = $1 AND tenant IS NULL AND serves",
        )
        .bind(name)
        .bind(shared_inboxes)
        .bind(sort_order)).await? > 0)
    }

    /// Makes a system domain the default domain; `false` where none of this name serves.
    pub async fn set_default_system_domain(&self, name: &str) -> Result<bool, StoreError> {
        self.fetch_value(
            sqlx::query("/* set_default_system_domain */ SELECT set_default_system_domain($1)").bind(name),
        )
        .await
    }

    /// Takes a system domain out of service: mail for it is refused, and mail under it can't be read. Its mailboxes
    /// prevent that, or are removed too (`with_mailboxes`): their addresses are then held for `hold_days`, and the
    /// worker deletes their mail.
    pub async fn remove_system_domain(
        &self,
        name: &str,
        with_mailboxes: bool,
        now: Timestamp,
        hold_days: u16,
    ) -> Result<SystemDomainRemoval, StoreError> {
        let statement = sqlx::query(
            "/* remove_system_domain */
            SELECT o_outcome, o_mailboxes FROM remove_system_domain($1, $2, $3, $4)",
        )
        .bind(name)
        .bind(with_mailboxes)
        .bind(now.to_sqlx())
        .bind(i32::from(hold_days));
        self.fetch_one(statement, |row| SystemDomainRemoval::from_row("remove_system_domain", row)).await
    }
}

/// A system domain, as clients list it.
#[derive(Debug, Clone)]
pub struct SystemDomain {
    /// UUIDv7: it tells when the row was created.
    pub id: Uuid,
    /// Its name, as A-labels.
    pub name: String,
    /// Whether it is the default domain.
    pub is_default: bool,
    /// Position in the list, ascending.
    pub sort_order: i32,
}

/// A domain that serves: mail for it is accepted and readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServingDomain {
    /// The id of its row.
    pub id: Uuid,
    /// The tenant of a custom domain; `None` for a system domain.
    pub tenant: Option<Uuid>,
}

impl SystemDomain {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.try_get("id")?,
            name: row.try_get("name")?,
            is_default: row.try_get("is_default")?,
            sort_order: row.try_get("sort_order")?,
        })
    }
}

impl ServingDomain {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        Ok(Self { id: row.try_get("id")?, tenant: row.try_get("tenant")? })
    }
}

impl Store {
    /// The system domains that serve, in their order.
    pub async fn list_system_domains(&self) -> Result<Vec<SystemDomain>, StoreError> {
        let statement = sqlx::query(
            "/* list_system_domains */
            SELECT id, name, is_default, sort_order FROM domain
            WHERE tenant IS NULL AND serves ORDER BY sort_order, name",
        );
        self.fetch_all(statement, SystemDomain::from_row).await
    }

    /// The domain of this name (A-labels) that serves.
    pub async fn find_serving_domain(&self, name: &str) -> Result<Option<ServingDomain>, StoreError> {
        let statement =
            sqlx::query("/* find_serving_domain */ SELECT id, tenant FROM domain WHERE name = $1 AND serves");
        self.fetch_optional(statement.bind(name), ServingDomain::from_row).await
    }

    /// The system domain of `<postmaster>` without a domain.
    pub async fn default_system_domain(&self) -> Result<Option<String>, StoreError> {
        let statement = sqlx::query(
            "/* default_system_domain */ SELECT name FROM domain
            WHERE tenant IS NULL AND serves ORDER BY is_default DESC, sort_order, name LIMIT 1",
        );
        self.fetch_optional(statement, first_column).await
    }
}
