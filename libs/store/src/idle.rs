//! What ends by itself: mailboxes that are idle, and addresses whose hold is over.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;

use crate::{Store, StoreError};

/// Rows that one statement here touches at most.
pub const CLEANUP_BATCH: i64 = 100;

impl Store {
    /// Removes up to [`CLEANUP_BATCH`] free mailboxes that were last seen before `idle_since`,
    /// exactly as their owners' `DELETE /api/me` does: gone at once, the mail purged by the
    /// worker, the address held for `hold_days` from `now`. Returns how many.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn remove_idle_mailboxes(
        &self,
        idle_since: Timestamp,
        now: Timestamp,
        hold_days: u16,
    ) -> Result<u64, StoreError> {
        let removed: i64 = sqlx::query_scalar(
            "/* remove_idle_mailboxes */ SELECT remove_idle_mailboxes($1, $2::integer, $3, $4)",
        )
        .bind(idle_since.to_sqlx())
        .bind(CLEANUP_BATCH)
        .bind(now.to_sqlx())
        .bind(i32::from(hold_days))
        .fetch_one(self.pool())
        .await?;
        Ok(removed.unsigned_abs())
    }

    /// Forgets up to [`CLEANUP_BATCH`] removed mailboxes whose address is no longer held and
    /// whose mail is gone (its deletion still needs the row). Returns how many.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn delete_released_mailboxes(&self, now: Timestamp) -> Result<u64, StoreError> {
        let deleted = sqlx::query(
            "/* delete_released_mailboxes */
            DELETE FROM mailbox WHERE removed_at IS NOT NULL AND held_until <= $1 AND id IN (
                SELECT b.id FROM mailbox b
                WHERE b.removed_at IS NOT NULL AND b.held_until <= $1
                  AND NOT EXISTS (SELECT FROM purge p WHERE p.inbox = b.id)
                ORDER BY b.held_until LIMIT $2 FOR UPDATE SKIP LOCKED)",
        )
        .bind(now.to_sqlx())
        .bind(CLEANUP_BATCH)
        .execute(self.pool())
        .await?;
        Ok(deleted.rows_affected())
    }
}
