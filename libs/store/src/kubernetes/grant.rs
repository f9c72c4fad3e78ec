//! Grants: what objects of a namespace, and their tokens, made of a tenant's ends with the namespace's grant.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::cluster::Epoch;
use crate::error::StoreError;
use crate::pool::Store;

/// A namespace of a cluster that has access to a tenant, by a token, webhook, custom domain or mailbox that is active.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedGrant {
    /// The tenant.
    pub tenant: Uuid,
    /// `metadata.uid` of the cluster's Tenant that declares it; `None` where there is none.
    pub tenant_object: Option<Uuid>,
    /// Name of that Tenant.
    pub tenant_name: Option<String>,
    /// Name of the namespace.
    pub namespace: String,
    /// `metadata.uid` of the namespace; `None` where an operator of the version before recorded its objects.
    pub namespace_uid: Option<Uuid>,
}

impl UsedGrant {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        Ok(Self {
            tenant: row.try_get("tenant")?,
            tenant_object: row.try_get("tenant_object")?,
            tenant_name: row.try_get("tenant_name")?,
            namespace: row.try_get("namespace")?,
            namespace_uid: row.try_get("namespace_uid")?,
        })
    }
}

impl Store {
    /// The namespaces of `cluster` that have access to tenants, whether they are granted it or not.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_used_grants(&self, cluster: Uuid) -> Result<Vec<UsedGrant>, StoreError> {
        let statement = sqlx::query(
            "/* list_used_grants */
            SELECT DISTINCT x.tenant, r.uid AS tenant_object, r.name AS tenant_name, o.namespace, o.namespace_uid
            FROM (
                SELECT k.tenant, k.origin FROM api_token k WHERE k.origin IS NOT NULL AND k.revoked_at IS NULL
                UNION ALL
                SELECT w.tenant, w.origin FROM webhook w WHERE w.origin IS NOT NULL AND w.status = 'active'
                UNION ALL
                SELECT d.tenant, d.origin FROM domain d
                WHERE d.origin IS NOT NULL AND d.active AND d.removed_at IS NULL
                UNION ALL
                SELECT b.tenant, b.origin FROM mailbox b
                WHERE b.origin IS NOT NULL AND b.active AND b.removed_at IS NULL
            ) x
            JOIN origin o ON o.uid = x.origin
            LEFT JOIN resource r ON r.row_id = x.tenant AND r.kind = 'Tenant' AND r.cluster = o.cluster
            WHERE o.cluster = $1",
        );
        self.fetch_all(statement.bind(cluster), UsedGrant::from_row).await
    }

    /// Ends what a namespace of `cluster` was granted: its tokens are revoked, its webhooks stop, and its custom domains
    /// and mailboxes are inactive; all that was made over HTTP with its tokens included.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing happened.
    pub async fn end_grant(
        &self,
        epoch: Epoch,
        cluster: Uuid,
        grant: &UsedGrant,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let statement = epoch
            .statement("/* end_grant */ SELECT end_grant($1, $2, $3, $4, $5, $6, $7)", grant.tenant_object);
        let statement = statement.bind(grant.tenant).bind(cluster).bind(&grant.namespace);
        self.execute(statement.bind(grant.namespace_uid).bind(now.to_sqlx())).await
    }
}
