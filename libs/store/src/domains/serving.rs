//! Domains that serve: those of the installation as clients list them, and any by name.

use sqlx::Row as _;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use crate::error::StoreError;
use crate::pool::Store;
use crate::row::first_column;

/// A system domain, as clients list it.
#[derive(Debug, Clone)]
pub struct SystemDomain {
    /// Its id.
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
    /// Its id.
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
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_system_domains(&self) -> Result<Vec<SystemDomain>, StoreError> {
        let statement = sqlx::query(
            "/* list_system_domains */
            SELECT id, name, is_default, sort_order FROM domain
            WHERE tenant IS NULL AND serves ORDER BY sort_order, name",
        );
        self.fetch_all(statement, SystemDomain::from_row).await
    }

    /// The domain of this name (A-labels) that serves.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_serving_domain(&self, name: &str) -> Result<Option<ServingDomain>, StoreError> {
        let statement =
            sqlx::query("/* find_serving_domain */ SELECT id, tenant FROM domain WHERE name = $1 AND serves");
        self.fetch_optional(statement.bind(name), ServingDomain::from_row).await
    }

    /// The system domain of `<postmaster>` without a domain.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn default_system_domain(&self) -> Result<Option<String>, StoreError> {
        let statement = sqlx::query(
            "/* default_system_domain */ SELECT name FROM domain
            WHERE tenant IS NULL AND serves ORDER BY is_default DESC, sort_order, name LIMIT 1",
        );
        self.fetch_optional(statement, first_column).await
    }
}
