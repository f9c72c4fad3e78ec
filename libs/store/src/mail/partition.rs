//! Partitions of `message` and `raw`: a pair for each time range and retention class, which is how long mail is kept.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tempmail_model::id::lowest_id;
use tempmail_model::retention::RetentionClass;
use uuid::Uuid;

use crate::error::StoreError;
use crate::pool::Store;
use crate::row::{first_column, time};

/// The time range of a pair of partitions: mail of one class that was accepted in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionRange {
    /// Retention of its mail.
    pub class: RetentionClass,
    /// Its start.
    pub starts: Timestamp,
}

/// The class of a row of a partition or tenant.
pub(crate) fn retention_class(hours: i16) -> Result<RetentionClass, StoreError> {
    RetentionClass::try_from(hours).map_err(|_unknown| StoreError::Inconsistent {
        table: "message_partition",
        column: "class",
        id: lowest_id(Timestamp::UNIX_EPOCH),
    })
}

/// The class of a message.
pub(crate) fn class_of(hours: i16, id: Uuid) -> Result<RetentionClass, StoreError> {
    RetentionClass::try_from(hours).map_err(|_unknown| StoreError::Inconsistent {
        table: "message",
        column: "class",
        id,
    })
}

/// SQL: `arm` for each class as one `UNION ALL`. Each arm names its class, so that it is pruned to the partitions
/// of that class.
pub(crate) fn each_class(arm: impl Fn(i16) -> String) -> String {
    RetentionClass::ALL.map(|class| arm(class.hours())).join(" UNION ALL ")
}

impl Store {
    /// The classes that new mail can have: those of mail without a tenant, and those of the tenants.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_active_classes(&self) -> Result<Vec<RetentionClass>, StoreError> {
        let statement = sqlx::query(
            "/* list_active_classes */ SELECT class FROM free_class UNION SELECT retention_hours FROM tenant \
             WHERE removed_at IS NULL ORDER BY 1",
        );
        self.fetch_all(statement, |row| retention_class(first_column(row)?)).await
    }

    /// Records a retention of mail without a tenant (`retention.free_hours`): reads look in every class that was
    /// ever recorded. Each role that accepts or reads mail records its own.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn record_free_class(&self, class: RetentionClass) -> Result<(), StoreError> {
        self.execute(sqlx::query(
            "/* record_free_class */
            INSERT INTO free_class (class) SELECT $1 WHERE NOT EXISTS (SELECT FROM free_class WHERE class = $1)
            ON CONFLICT DO NOTHING",
        )
        .bind(class.hours())).await
    }

    /// Those of the `wanted` partitions that do not exist.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_missing_partitions(
        &self,
        wanted: &[PartitionRange],
    ) -> Result<Vec<PartitionRange>, StoreError> {
        let classes: Vec<i16> = wanted.iter().map(|partition| partition.class.hours()).collect();
        let starts: Vec<_> = wanted.iter().map(|partition| partition.starts.to_sqlx()).collect();
        self.fetch_all(
            sqlx::query(
                "/* list_missing_partitions */
            SELECT w.class, w.starts FROM unnest($1::smallint[], $2::timestamptz[]) AS w (class, starts)
            WHERE NOT EXISTS (SELECT FROM message_partition s WHERE s.class = w.class AND s.starts = w.starts)
            ORDER BY w.starts, w.class",
            )
            .bind(classes)
            .bind(starts),
            partition_range,
        )
        .await
    }

    /// How many partitions are attached.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn count_partitions(&self) -> Result<i64, StoreError> {
        self.fetch_value(sqlx::query("/* count_partitions */ SELECT count(*) FROM message_partition")).await
    }

    /// The partitions whose youngest possible message has expired, oldest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_expired_partitions(&self, now: Timestamp) -> Result<Vec<PartitionRange>, StoreError> {
        self.fetch_all(
            sqlx::query(
                "/* list_expired_partitions */
            SELECT class, starts FROM message_partition WHERE ends + make_interval(hours => class) <= $1
            ORDER BY ends + make_interval(hours => class), class",
            )
            .bind(now.to_sqlx()),
            partition_range,
        )
        .await
    }

    /// Creates the partitions of `class` whose time range contains `at`; true where they were missing.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn ensure_message_partition(
        &self,
        class: RetentionClass,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let made = self
            .fetch_value(
                sqlx::query("/* ensure_message_partition */ SELECT ensure_message_partition($1, $2)")
                    .bind(class.hours())
                    .bind(at.to_sqlx()),
            )
            .await?;
        Ok(made)
    }

    /// Detaches a partition from its tables; `false` where another transaction held a lock on them for 10 ms.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn detach_message_partition(&self, partition: PartitionRange) -> Result<bool, StoreError> {
        let statement = sqlx::query("/* detach_message_partition */ SELECT detach_message_partition($1, $2)")
            .bind(partition.class.hours())
            .bind(partition.starts.to_sqlx());
        self.execute_unless_locked(statement).await
    }

    /// Drops the tables of detached partitions and so frees their space; returns how many tables.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn drop_detached_partitions(&self) -> Result<i32, StoreError> {
        self.fetch_value(sqlx::query("/* drop_detached_partitions */ SELECT drop_detached_partitions()"))
            .await
    }
}

fn partition_range(row: &PgRow) -> Result<PartitionRange, StoreError> {
    Ok(PartitionRange { class: retention_class(row.try_get("class")?)?, starts: time(row, "starts")? })
}
