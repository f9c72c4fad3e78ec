//! Domains: system domains of the installation, custom domains of a tenant.

use sqlx::Row as _;
use uuid::Uuid;

use crate::{Store, StoreError};

/// A system domain, as clients list it.
#[derive(Debug, Clone)]
pub struct SystemDomain {
    /// Its id.
    pub id: Uuid,
    /// Its name, as A-labels.
    pub name: String,
    /// Whether it is the default one.
    pub is_default: bool,
    /// Place in the list, ascending.
    pub sort_order: i32,
}

/// A domain that mail is accepted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServingDomain {
    /// Its id.
    pub id: Uuid,
    /// Whose custom domain it is; `None` for a system domain.
    pub tenant: Option<Uuid>,
}

impl Store {
    /// The system domains that serve, in their order.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_system_domains(&self) -> Result<Vec<SystemDomain>, StoreError> {
        let rows = sqlx::query(
            "/* list_system_domains */
            SELECT id, name, is_default, sort_order FROM domain
            WHERE tenant IS NULL AND serves ORDER BY sort_order, name",
        )
        .fetch_all(self.pool())
        .await?;
        rows.iter()
            .map(|row| {
                Ok(SystemDomain {
                    id: row.try_get("id")?,
                    name: row.try_get("name")?,
                    is_default: row.try_get("is_default")?,
                    sort_order: row.try_get("sort_order")?,
                })
            })
            .collect()
    }

    /// The domain of this name (A-labels) that serves.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_serving_domain(&self, name: &str) -> Result<Option<ServingDomain>, StoreError> {
        let row =
            sqlx::query("/* find_serving_domain */ SELECT id, tenant FROM domain WHERE name = $1 AND serves")
                .bind(name)
                .fetch_optional(self.pool())
                .await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(ServingDomain { id: row.try_get("id")?, tenant: row.try_get("tenant")? }))
    }
}
