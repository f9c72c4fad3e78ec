//! Partitions of `message` and `raw`: a pair per retention class and time range.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use tempmail_model::retention::RetentionClass;

use crate::retention::retention_class;
use crate::{Store, StoreError};

impl Store {
    /// Creates the partitions of `class` whose time range contains `at`; true where they were missing.
    ///
    /// # Errors
    /// Postgres is away or refuses.
    pub async fn ensure_message_partition(
        &self,
        class: RetentionClass,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let made =
            sqlx::query_scalar("/* ensure_message_partition */ SELECT ensure_message_partition($1, $2)")
                .bind(class.hours())
                .bind(at.to_sqlx())
                .fetch_one(&self.pool)
                .await?;
        Ok(made)
    }

    /// The classes that new mail can have: those of the free service and of every tenant.
    ///
    /// # Errors
    /// Postgres is away, or a row has a class that is none.
    pub async fn list_active_classes(&self) -> Result<Vec<RetentionClass>, StoreError> {
        let hours: Vec<i16> = sqlx::query_scalar(
            "/* list_active_classes */ SELECT class FROM free_class UNION SELECT retention_hours FROM tenant \
             WHERE removed_at IS NULL ORDER BY 1",
        )
        .fetch_all(&self.pool)
        .await?;
        hours.into_iter().map(retention_class).collect()
    }
}
