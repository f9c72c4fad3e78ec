//! Purges: what an owner deleted as a whole is hidden at once, and deleted in batches. Several workers may do so at
//! the same time.

use uuid::Uuid;

use crate::error::StoreError;
use crate::pool::Store;
use crate::row::first_column;

/// Messages that one batch of a purge deletes at most.
pub const PURGE_BATCH: i32 = 500;

impl Store {
    /// The purges to carry out, 1,000 at most: the oldest of each owner, then the second of each, and so on.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_purges(&self) -> Result<Vec<Uuid>, StoreError> {
        self.fetch_all(
            sqlx::query(
                "/* list_purges */ SELECT id FROM purge
                ORDER BY row_number() OVER (PARTITION BY owner ORDER BY created_at), created_at LIMIT 1000",
            ),
            first_column,
        )
        .await
    }

    /// Deletes one batch of a purge; returns how many messages. 0: it is complete, or another worker carries it out.
    /// One statement, so that mail never waits for this process to release a lock.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing of the batch happened.
    pub async fn purge_batch(&self, purge: Uuid) -> Result<u64, StoreError> {
        let deleted: i32 = self
            .fetch_value(
                sqlx::query("/* purge_batch */ SELECT purge_batch($1, $2)").bind(purge).bind(PURGE_BATCH),
            )
            .await?;
        Ok(u64::from(deleted.unsigned_abs()))
    }
}
