//! What ingest has to know to tell addresses that are plain shared inboxes from all others.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;

use crate::{Store, StoreError};

impl Store {
    /// Names of the system domains that serve shared inboxes.
    ///
    /// # Errors
    /// Postgres is away.
    pub async fn list_shared_domains(&self) -> Result<Vec<String>, StoreError> {
        let names = sqlx::query_scalar(
            "/* list_shared_domains */ SELECT name FROM domain WHERE tenant IS NULL AND serves AND shared_inboxes",
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(names)
    }

    /// Local part and domain of up to `limit` addresses that have, or had, a mailbox made
    /// since `since`, live or held.
    ///
    /// # Errors
    /// Postgres is away.
    pub async fn list_mailbox_addresses(
        &self,
        since: Timestamp,
        limit: i64,
    ) -> Result<Vec<(String, String)>, StoreError> {
        let addresses = sqlx::query_as(
            "/* list_mailbox_addresses */ SELECT m.local_part, d.name \
             FROM mailbox m JOIN domain d ON d.id = m.domain \
             WHERE m.id >= time_id($1) AND d.tenant IS NULL LIMIT $2",
        )
        .bind(since.to_sqlx())
        .bind(limit)
        .fetch_all(&self.pool)
        .await?;
        Ok(addresses)
    }
}
