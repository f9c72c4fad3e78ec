//! Retention classes: how long mail is kept, which decides in which partition it is stored.

use jiff::Timestamp;
use tempmail_model::id::lowest_id;
use tempmail_model::retention::RetentionClass;
use uuid::Uuid;

use crate::error::StoreError;
use crate::pool::Store;
use crate::row::first_column;

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
}
