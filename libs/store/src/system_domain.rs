//! System domains as the operator of an installation has them.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tempmail_model::id::new_id;
use uuid::Uuid;

use crate::change::ManagedBy;
use crate::row::time;
use crate::{Store, StoreError};

/// A system domain that serves, and how it is used.
#[derive(Debug, Clone)]
pub struct SystemDomainUsage {
    /// Its id.
    pub id: Uuid,
    /// Its name, as A-labels.
    pub name: String,
    /// Whether it is the default one.
    pub is_default: bool,
    /// Place in the list, ascending.
    pub sort_order: i32,
    /// Whether its addresses receive without a mailbox.
    pub shared_inboxes: bool,
    /// Mailboxes under it.
    pub mailboxes: i64,
    /// Who may change it: whoever administers the installation, or its resource.
    pub managed_by: ManagedBy,
    /// When it was made.
    pub created_at: Timestamp,
}

/// What came of adding a system domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SystemDomainAddition {
    /// It serves now; one that was removed has its held addresses still.
    Added,
    /// It did already, and stays as it was.
    AlreadyServes,
    /// A pending or verified custom domain of this name is equal to it, above or below it.
    Overlaps(String),
}

/// What came of removing a system domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemDomainRemoval {
    /// It serves no longer. Its addresses stay held.
    Removed,
    /// There is none of that name.
    NotFound,
    /// It is the only one.
    LastOne,
    /// It is the default one.
    IsDefault,
    /// So many mailboxes use it.
    InUse(i64),
}

impl SystemDomainRemoval {
    /// What the answer of a function of the schema means.
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
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_system_domain_usage(&self) -> Result<Vec<SystemDomainUsage>, StoreError> {
        let rows = sqlx::query(
            "/* list_system_domain_usage */
            SELECT d.id, d.name, d.is_default, d.sort_order, d.shared_inboxes, d.created_at, d.managed_by,
                   (SELECT count(*) FROM mailbox b WHERE b.domain = d.id AND b.removed_at IS NULL) AS mailboxes
            FROM domain d WHERE d.tenant IS NULL AND d.serves ORDER BY d.sort_order, d.name",
        )
        .fetch_all(self.pool())
        .await?;
        rows.iter()
            .map(|row| {
                let id = row.try_get("id")?;
                Ok(SystemDomainUsage {
                    id,
                    name: row.try_get("name")?,
                    is_default: row.try_get("is_default")?,
                    sort_order: row.try_get("sort_order")?,
                    shared_inboxes: row.try_get("shared_inboxes")?,
                    mailboxes: row.try_get("mailboxes")?,
                    managed_by: ManagedBy::from_word(row.try_get("managed_by")?, "domain", id)?,
                    created_at: time(row, "created_at")?,
                })
            })
            .collect()
    }

    /// Makes the system domain `name` (A-labels) serve; the first one becomes the default.
    /// `None` is as it was where the domain was removed before, else the default: shared
    /// inboxes, and the last place.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn add_system_domain(
        &self,
        name: &str,
        shared_inboxes: Option<bool>,
        sort_order: Option<i32>,
        now: Timestamp,
    ) -> Result<SystemDomainAddition, StoreError> {
        let row = sqlx::query(
            "/* add_system_domain */ SELECT o_id, o_overlapping FROM add_system_domain($1, $2, $3, $4, $5)",
        )
        .bind(new_id(now))
        .bind(name)
        .bind(shared_inboxes)
        .bind(sort_order)
        .bind(now.to_sqlx())
        .fetch_one(self.pool())
        .await?;
        if let Some(name) = row.try_get("o_overlapping")? {
            return Ok(SystemDomainAddition::Overlaps(name));
        }
        let added: Option<Uuid> = row.try_get("o_id")?;
        Ok(if added.is_some() { SystemDomainAddition::Added } else { SystemDomainAddition::AlreadyServes })
    }

    /// Changes a system domain; `None` leaves it as it is. `false` where there is none of that
    /// name.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn change_system_domain(
        &self,
        name: &str,
        shared_inboxes: Option<bool>,
        sort_order: Option<i32>,
    ) -> Result<bool, StoreError> {
        let changed = sqlx::query(
            "/* change_system_domain */
            UPDATE domain SET shared_inboxes = coalesce($2, shared_inboxes), sort_order = coalesce($3, sort_order)
            WHERE name = $1 AND tenant IS NULL AND serves",
        )
        .bind(name)
        .bind(shared_inboxes)
        .bind(sort_order)
        .execute(self.pool())
        .await?;
        Ok(changed.rows_affected() > 0)
    }

    /// Makes a system domain the default one; `false` where there is none of that name.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn set_default_system_domain(&self, name: &str) -> Result<bool, StoreError> {
        Ok(sqlx::query_scalar("/* set_default_system_domain */ SELECT set_default_system_domain($1)")
            .bind(name)
            .fetch_one(self.pool())
            .await?)
    }

    /// Takes a system domain out of service: mail for it is refused, and what is under it can't
    /// be read. Mailboxes that use it keep it in service, or go with it: then their addresses
    /// are held for `hold_days`, and the worker purges their mail.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn remove_system_domain(
        &self,
        name: &str,
        with_mailboxes: bool,
        now: Timestamp,
        hold_days: u16,
    ) -> Result<SystemDomainRemoval, StoreError> {
        let row = sqlx::query(
            "/* remove_system_domain */
            SELECT o_outcome, o_mailboxes FROM remove_system_domain($1, $2, $3, $4)",
        )
        .bind(name)
        .bind(with_mailboxes)
        .bind(now.to_sqlx())
        .bind(i32::from(hold_days))
        .fetch_one(self.pool())
        .await?;
        SystemDomainRemoval::from_row("remove_system_domain", &row)
    }
}
