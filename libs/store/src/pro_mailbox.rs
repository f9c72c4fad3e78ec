//! Mailboxes as their tenant manages them: also those under a domain that serves no longer, which
//! count towards its limit, too.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use tempmail_model::limits::PAGE_SIZE;
use uuid::Uuid;

use crate::change::ChangeError;
use crate::page::rows_before;
use crate::row::time;
use crate::{Store, StoreError};

/// A mailbox in the list of its tenant.
#[derive(Debug, Clone)]
pub struct ListedMailbox {
    /// Its id.
    pub id: Uuid,
    /// `local-part@domain`.
    pub address: String,
    /// Octets it may hold.
    pub quota: i64,
    /// Octets of its unexpired messages.
    pub used: i64,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A mailbox that its tenant named by id.
#[derive(Debug, Clone)]
pub struct TenantMailbox {
    /// Its id.
    pub id: Uuid,
    /// Its domain.
    pub domain: Uuid,
    /// `local-part@domain`.
    pub address: String,
    /// Whether its domain serves: else its mail can't be read.
    pub serves: bool,
    /// Whether a Kubernetes resource manages it.
    pub managed_by_kubernetes: bool,
}

impl Store {
    /// A page (from 1, 30 mailboxes) of a tenant's mailboxes, newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_tenant_mailboxes(
        &self,
        tenant: Uuid,
        page: i64,
        now: Timestamp,
    ) -> Result<Vec<ListedMailbox>, StoreError> {
        let rows = sqlx::query(
            "/* list_tenant_mailboxes */
            SELECT b.id, b.local_part || '@' || d.name AS address, b.quota, mailbox_used(b.id, $2) AS used,
                   b.created_at
            FROM (SELECT * FROM mailbox WHERE tenant = $1 AND removed_at IS NULL
                  ORDER BY created_at DESC, id DESC OFFSET $3 LIMIT $4) b
            JOIN domain d ON d.id = b.domain
            ORDER BY b.created_at DESC, b.id DESC",
        )
        .bind(tenant)
        .bind(now.to_sqlx())
        .bind(rows_before(page))
        .bind(PAGE_SIZE)
        .fetch_all(self.pool())
        .await?;
        rows.iter()
            .map(|row| {
                Ok(ListedMailbox {
                    id: row.try_get("id")?,
                    address: row.try_get("address")?,
                    quota: row.try_get("quota")?,
                    used: row.try_get("used")?,
                    created_at: time(row, "created_at")?,
                })
            })
            .collect()
    }

    /// A mailbox of a tenant that is not removed.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_tenant_mailbox(
        &self,
        tenant: Uuid,
        id: Uuid,
    ) -> Result<Option<TenantMailbox>, StoreError> {
        let row = sqlx::query(
            "/* find_tenant_mailbox */
            SELECT b.id, b.domain, b.local_part || '@' || d.name AS address, d.serves,
                   b.managed_by = 'kubernetes' AS managed_by_kubernetes
            FROM mailbox b JOIN domain d ON d.id = b.domain
            WHERE b.id = $1 AND b.tenant = $2 AND b.removed_at IS NULL",
        )
        .bind(id)
        .bind(tenant)
        .fetch_optional(self.pool())
        .await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(TenantMailbox {
            id: row.try_get("id")?,
            domain: row.try_get("domain")?,
            address: row.try_get("address")?,
            serves: row.try_get("serves")?,
            managed_by_kubernetes: row.try_get("managed_by_kubernetes")?,
        }))
    }

    /// Gives a mailbox of a tenant another password (`password_hash`, PHC string) and ends all of
    /// its JWTs.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn reset_mailbox_password(
        &self,
        tenant: Uuid,
        id: Uuid,
        password_hash: &str,
    ) -> Result<Result<(), ChangeError>, StoreError> {
        let managed_by: Option<String> = sqlx::query_scalar(
            "/* reset_mailbox_password */
            WITH found AS (
                SELECT id, managed_by FROM mailbox
                WHERE id = $1 AND tenant = $2 AND removed_at IS NULL FOR NO KEY UPDATE
            ), changed AS (
                UPDATE mailbox b SET password_hash = $3, password_epoch = b.password_epoch + 1
                FROM found f WHERE b.id = f.id AND f.managed_by = 'api'
            )
            SELECT managed_by FROM found",
        )
        .bind(id)
        .bind(tenant)
        .bind(password_hash)
        .fetch_optional(self.pool())
        .await?;
        ChangeError::unless_changed(managed_by.as_deref(), "mailbox", id)
    }
}
