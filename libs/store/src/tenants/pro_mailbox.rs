//! Mailboxes as their tenant manages them, including those under a domain that no longer serves: these count towards
//! its limit, too.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tempmail_model::limits::OWNED_PAGE_SIZE;
use uuid::Uuid;

use crate::error::StoreError;
use crate::pool::Store;
use crate::row::{ChangeError, rows_before, time};

/// A mailbox in the list of its tenant.
#[derive(Debug, Clone)]
pub struct ListedMailbox {
    /// UUIDv7: it tells when the row was created.
    pub id: Uuid,
    /// `local-part@domain`.
    pub address: String,
    /// Bytes that it may hold.
    pub quota: i64,
    /// Bytes of its unexpired messages.
    pub used: i64,
    /// When it was created.
    pub created_at: Timestamp,
}

/// A mailbox that its tenant named by id.
#[derive(Debug, Clone)]
pub struct TenantMailbox {
    /// UUIDv7: it tells when the row was created.
    pub id: Uuid,
    /// Its domain.
    pub domain: Uuid,
    /// `local-part@domain`.
    pub address: String,
    /// Whether its domain serves; else its mail can't be read.
    pub serves: bool,
    /// Whether a Kubernetes object manages it.
    pub managed_by_kubernetes: bool,
}

impl ListedMailbox {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.try_get("id")?,
            address: row.try_get("address")?,
            quota: row.try_get("quota")?,
            used: row.try_get("used")?,
            created_at: time(row, "created_at")?,
        })
    }
}

impl TenantMailbox {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.try_get("id")?,
            domain: row.try_get("domain")?,
            address: row.try_get("address")?,
            serves: row.try_get("serves")?,
            managed_by_kubernetes: row.try_get("managed_by_kubernetes")?,
        })
    }
}

impl Store {
    /// A page (from 1, 1,000 mailboxes) of a tenant's mailboxes, newest first.
    pub async fn list_tenant_mailboxes(
        &self,
        tenant: Uuid,
        page: i64,
        now: Timestamp,
    ) -> Result<Vec<ListedMailbox>, StoreError> {
        let statement = sqlx::query(
            "/* list_tenant_mailboxes */
            SELECT b.id, b.local_part || '@' || d.name AS address, b.quota, mailbox_used(b.id, $2) AS used,
                   b.created_at
            FROM (SELECT id, domain, local_part, quota, created_at FROM mailbox WHERE tenant = $1 AND removed_at IS NULL
                  ORDER BY created_at DESC, id DESC OFFSET $3 LIMIT $4) b
            JOIN domain d ON d.id = b.domain
            ORDER BY b.created_at DESC, b.id DESC",
        )
        .bind(tenant)
        .bind(now.to_sqlx())
        .bind(rows_before(page, OWNED_PAGE_SIZE))
        .bind(OWNED_PAGE_SIZE);
        self.fetch_all(statement, ListedMailbox::from_row).await
    }

    /// A mailbox of a tenant that is not removed.
    pub async fn find_tenant_mailbox(
        &self,
        tenant: Uuid,
        id: Uuid,
    ) -> Result<Option<TenantMailbox>, StoreError> {
        let statement = sqlx::query(
            "/* find_tenant_mailbox */
            SELECT b.id, b.domain, b.local_part || '@' || d.name AS address, d.serves,
                   b.managed_by = 'kubernetes' AS managed_by_kubernetes
            FROM mailbox b JOIN domain d ON d.id = b.domain
            WHERE b.id = $1 AND b.tenant = $2 AND b.removed_at IS NULL",
        )
        .bind(id)
        .bind(tenant);
        self.fetch_optional(statement, TenantMailbox::from_row).await
    }

    /// Sets another password (`password_hash`, PHC string) of a tenant's mailbox with the API token `token`, and
    /// revokes all of its JWTs. A mailbox that was deactivated is active again; it ends with what its new password
    /// comes from.
    ///
    /// # Errors
    /// [`StoreError`]; [`StoreError::TokenEnded`].
    pub async fn reset_mailbox_password(
        &self,
        tenant: Uuid,
        id: Uuid,
        token: Uuid,
        password_hash: &str,
    ) -> Result<Result<(), ChangeError>, StoreError> {
        let statement =
            sqlx::query("/* reset_mailbox_password */ SELECT reset_mailbox_password($1, $2, $3, $4)")
                .bind(tenant)
                .bind(id)
                .bind(token)
                .bind(password_hash);
        let managed_by: Option<String> = self.fetch_value(statement).await?;
        ChangeError::unless_changed(managed_by.as_deref(), "mailbox", id)
    }
}
