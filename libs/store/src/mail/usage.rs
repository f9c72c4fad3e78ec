//! How many bytes are stored: for limits that may lag by seconds, and the deletion of expired sums.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tempmail_model::id;

use super::accept::NewMessage;
use super::partition::PartitionRange;
use crate::error::StoreError;
use crate::pool::Store;
use crate::row::first_column;

/// Rows of usage that one statement deletes at most.
pub const USAGE_BATCH: u64 = 50_000;

/// Bytes on the disk of the installation's mail: compressed data, once a mail and retention class, and the rows of
/// messages; a partition counts in full until it has expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreUsage {
    /// Those of all shared inboxes.
    pub shared: u64,
    /// Those of mail without a tenant: of shared inboxes and of free mailboxes.
    pub free: u64,
    /// All of them.
    pub total: u64,
}

impl StoreUsage {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        let bytes = |column| Ok::<_, StoreError>(row.try_get::<i64, _>(column)?.max(0).cast_unsigned());
        Ok(Self { shared: bytes("shared")?, free: bytes("free")?, total: bytes("total")? })
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
            SELECT coalesce(sum(shared_bytes), 0)::bigint AS shared, coalesce(sum(free_bytes), 0)::bigint AS free,
                   coalesce(sum(bytes), 0)::bigint AS total
            FROM message_partition WHERE ends > $1 - make_interval(hours => class)",
        )
        .bind(now.to_sqlx());
        self.fetch_one(statement, StoreUsage::from_row).await
    }

    /// Bytes of the unexpired messages of the shared inbox that a recipient is now; `None` where it is none, such as
    /// the address of a mailbox.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn shared_inbox_usage(
        &self,
        recipient: &NewMessage,
        now: Timestamp,
    ) -> Result<Option<u64>, StoreError> {
        let statement = sqlx::query(
            "/* shared_inbox_usage */
            SELECT (SELECT coalesce(sum(m.size), 0)::bigint FROM free_class f
                    CROSS JOIN LATERAL (SELECT size FROM message
                        WHERE class = f.class AND inbox = $4 AND owner = $5
                          AND id >= time_id($6 - make_interval(hours => f.class))) m)
            FROM address_owner($1, $2, $3, $6) o WHERE o.owner_kind = 0",
        )
        .bind(recipient.address.domain())
        .bind(recipient.address.base_local_part())
        .bind(recipient.reserved_code())
        .bind(recipient.address.inbox_key())
        .bind(id::SHARED_OWNER)
        .bind(now.to_sqlx());
        let used: Option<i64> = self.fetch_optional(statement, first_column).await?;
        Ok(used.map(|used| used.max(0).cast_unsigned()))
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
