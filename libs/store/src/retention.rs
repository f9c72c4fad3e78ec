//! What the worker does to stored mail: expired partitions are dropped, and deletions carried out in
//! batches. Several workers at once are harmless.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use tempmail_model::id::lowest_id;
use tempmail_model::retention::RetentionClass;
use uuid::Uuid;

use crate::row::time;
use crate::{Store, StoreError};

/// Messages that one batch of a purge deletes at most.
pub const PURGE_BATCH: i32 = 500;

/// Rows of usage that one statement forgets at most.
pub const USAGE_BATCH: u64 = 50_000;

/// A pair of partitions: the mail of one class that arrived in one time range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionRange {
    /// Retention of its mail.
    pub class: RetentionClass,
    /// Its first moment.
    pub starts: Timestamp,
}

impl Store {
    /// Which of these partitions are not there.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_missing_partitions(
        &self,
        wanted: &[PartitionRange],
    ) -> Result<Vec<PartitionRange>, StoreError> {
        let classes: Vec<i16> = wanted.iter().map(|partition| partition.class.hours()).collect();
        let starts: Vec<_> = wanted.iter().map(|partition| partition.starts.to_sqlx()).collect();
        let rows = sqlx::query(
            "/* list_missing_partitions */
            SELECT w.class, w.starts FROM unnest($1::smallint[], $2::timestamptz[]) AS w (class, starts)
            WHERE NOT EXISTS (SELECT FROM message_partition s WHERE s.class = w.class AND s.starts = w.starts)
            ORDER BY w.starts, w.class",
        )
        .bind(classes)
        .bind(starts)
        .fetch_all(self.pool())
        .await?;
        rows.iter().map(partition_range).collect()
    }

    /// How many partitions are attached.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn count_partitions(&self) -> Result<i64, StoreError> {
        Ok(sqlx::query_scalar("/* count_partitions */ SELECT count(*) FROM message_partition")
            .fetch_one(self.pool())
            .await?)
    }

    /// The partitions whose youngest possible message has expired, oldest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_expired_partitions(&self, now: Timestamp) -> Result<Vec<PartitionRange>, StoreError> {
        let rows = sqlx::query(
            "/* list_expired_partitions */
            SELECT class, starts FROM message_partition WHERE ends + make_interval(hours => class) <= $1
            ORDER BY ends + make_interval(hours => class), class",
        )
        .bind(now.to_sqlx())
        .fetch_all(self.pool())
        .await?;
        rows.iter().map(partition_range).collect()
    }

    /// Forgets what a partition whose mail has expired added to the sums of octets, up to
    /// [`USAGE_BATCH`] rows; returns how many. Sums leave such a partition out already.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn delete_expired_usage(&self, partition: PartitionRange) -> Result<u64, StoreError> {
        let deleted = sqlx::query(
            "/* delete_expired_usage */
            DELETE FROM usage WHERE ctid = ANY (ARRAY(
                SELECT ctid FROM usage WHERE class = $1 AND starts = $2 LIMIT $3))",
        )
        .bind(partition.class.hours())
        .bind(partition.starts.to_sqlx())
        .bind(USAGE_BATCH.cast_signed())
        .execute(self.pool())
        .await?;
        Ok(deleted.rows_affected())
    }

    /// Detaches a partition from the tables; `false` where another transaction kept its lock for 10 ms.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn detach_message_partition(&self, partition: PartitionRange) -> Result<bool, StoreError> {
        let detached = sqlx::query("/* detach_message_partition */ SELECT detach_message_partition($1, $2)")
            .bind(partition.class.hours())
            .bind(partition.starts.to_sqlx())
            .execute(self.pool())
            .await;
        match detached {
            Ok(_) => Ok(true),
            Err(error) if is_lock_timeout(&error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Drops the tables of detached partitions and so frees their space; returns how many tables.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn drop_detached_partitions(&self) -> Result<i32, StoreError> {
        Ok(sqlx::query_scalar("/* drop_detached_partitions */ SELECT drop_detached_partitions()")
            .fetch_one(self.pool())
            .await?)
    }

    /// The purges that are waiting, oldest first; 1,000 at most.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_purges(&self) -> Result<Vec<Uuid>, StoreError> {
        Ok(sqlx::query_scalar("/* list_purges */ SELECT id FROM purge ORDER BY created_at LIMIT 1000")
            .fetch_all(self.pool())
            .await?)
    }

    /// Deletes one batch of a purge and returns how many messages that were; 0 once it is carried out, or while
    /// another worker carries it out. One statement, so that no lock that mail may need waits for this process.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing of the batch happened.
    pub async fn purge_batch(&self, purge: Uuid) -> Result<u64, StoreError> {
        let deleted: i32 = sqlx::query_scalar("/* purge_batch */ SELECT purge_batch($1, $2)")
            .bind(purge)
            .bind(PURGE_BATCH)
            .fetch_one(self.pool())
            .await?;
        Ok(u64::from(deleted.unsigned_abs()))
    }
}

fn partition_range(row: &sqlx::postgres::PgRow) -> Result<PartitionRange, StoreError> {
    Ok(PartitionRange { class: retention_class(row.try_get("class")?)?, starts: time(row, "starts")? })
}

/// The class that a row of partitions or tenants has.
pub(crate) fn retention_class(hours: i16) -> Result<RetentionClass, StoreError> {
    RetentionClass::try_from(hours).map_err(|_unknown| StoreError::Inconsistent {
        table: "message_partition",
        column: "class",
        id: lowest_id(Timestamp::UNIX_EPOCH),
    })
}

/// `lock_timeout` has passed, or there was a deadlock.
fn is_lock_timeout(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|database| database.code());
    matches!(code.as_deref(), Some("55P03" | "40P01"))
}
