//! How much is stored, for the bounds that may lag by seconds.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use tempmail_model::id;
use uuid::Uuid;

use crate::{Store, StoreError};

/// Octets that the installation holds; an expiring partition counts whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreUsage {
    /// In all shared inboxes.
    pub shared: u64,
    /// In all.
    pub total: u64,
}

impl Store {
    /// What all shared inboxes, and everything, hold now.
    ///
    /// # Errors
    /// Postgres is away.
    pub async fn store_usage(&self, now: Timestamp) -> Result<StoreUsage, StoreError> {
        let (shared, total): (i64, i64) = sqlx::query_as(
            "/* store_usage */
            SELECT coalesce(sum(shared_bytes), 0)::bigint, coalesce(sum(bytes), 0)::bigint
            FROM message_partition WHERE ends > $1 - make_interval(hours => class)",
        )
        .bind(now.to_sqlx())
        .fetch_one(&self.pool)
        .await?;
        Ok(StoreUsage { shared: shared.max(0).cast_unsigned(), total: total.max(0).cast_unsigned() })
    }

    /// Octets of the unexpired messages in one shared inbox.
    ///
    /// # Errors
    /// Postgres is away.
    pub async fn shared_inbox_usage(&self, inbox: Uuid, now: Timestamp) -> Result<u64, StoreError> {
        let used: i64 = sqlx::query_scalar(
            "/* shared_inbox_usage */ \
             SELECT coalesce(sum(m.size), 0)::bigint FROM free_class f \
             CROSS JOIN LATERAL (SELECT size FROM message \
                 WHERE class = f.class AND inbox = $1 AND owner = $2 \
                   AND id >= time_id($3 - make_interval(hours => f.class))) m",
        )
        .bind(inbox)
        .bind(id::SHARED_OWNER)
        .bind(now.to_sqlx())
        .fetch_one(&self.pool)
        .await?;
        Ok(used.max(0).cast_unsigned())
    }
}
