//! How many bytes are stored: for limits that may lag by seconds, and the deletion of expired sums.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tempmail_model::id;
use uuid::Uuid;

use super::partition::PartitionRange;
use crate::error::StoreError;
use crate::pool::Store;

/// Rows of usage that one statement deletes at most.
pub const USAGE_BATCH: u64 = 50_000;

/// Bytes that the installation stores; a partition counts in full until it has expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreUsage {
    /// Those of all shared inboxes.
    pub shared: u64,
    /// All of them.
    pub total: u64,
}

impl StoreUsage {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        let bytes = |column| Ok::<_, StoreError>(row.try_get::<i64, _>(column)?.max(0).cast_unsigned());
        Ok(Self { shared: bytes("shared")?, total: bytes("total")? })
    }
}

impl Store {
    /// The bytes stored now.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn store_usage(&self, now: Timestamp) -> Result<StoreUsage, StoreError> {
        let statement = sqlx::query(
            "/* store_usage */
            SELECT coalesce(sum(shared_bytes), 0)::bigint AS shared, coalesce(sum(bytes), 0)::bigint AS total
            FROM message_partition WHERE ends > $1 - make_interval(hours => class)",
        )
        .bind(now.to_sqlx());
        self.fetch_one(statement, StoreUsage::from_row).await
    }

    /// Bytes of the unexpired messages of a shared inbox.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn shared_inbox_usage(&self, inbox: Uuid, now: Timestamp) -> Result<u64, StoreError> {
        let used: i64 = self
            .fetch_value(
                sqlx::query(
                    "/* shared_inbox_usage */ \
             SELECT coalesce(sum(m.size), 0)::bigint FROM free_class f \
             CROSS JOIN LATERAL (SELECT size FROM message \
                 WHERE class = f.class AND inbox = $1 AND owner = $2 \
                   AND id >= time_id($3 - make_interval(hours => f.class))) m",
                )
                .bind(inbox)
                .bind(id::SHARED_OWNER)
                .bind(now.to_sqlx()),
            )
            .await?;
        Ok(used.max(0).cast_unsigned())
    }

    /// Deletes up to [`USAGE_BATCH`] rows of usage of a partition whose mail has expired; returns how many. Sums
    /// do not include such a partition any more.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn delete_expired_usage(&self, partition: PartitionRange) -> Result<u64, StoreError> {
        self.affected_rows(
            sqlx::query(
                "/* delete_expired_usage */
            DELETE FROM usage WHERE ctid = ANY (ARRAY(
                SELECT ctid FROM usage WHERE class = $1 AND starts = $2 LIMIT $3))",
            )
            .bind(partition.class.hours())
            .bind(partition.starts.to_sqlx())
            .bind(USAGE_BATCH.cast_signed()),
        )
        .await
    }
}
