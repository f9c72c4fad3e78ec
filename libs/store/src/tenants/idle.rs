//! Cleanup of mailboxes: idle free ones are removed, and rows are deleted when the hold of their address is over.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;

use crate::error::StoreError;
use crate::pool::Store;

/// Mailboxes that one statement removes or deletes at most.
pub const CLEANUP_BATCH: i64 = 100;

impl Store {
    /// Removes up to [`CLEANUP_BATCH`] free mailboxes that were last seen before `idle_since`, as `DELETE /api/me`
    /// does: hidden at once, the mail deleted by the worker, the address held for `hold_days` from `now`. Returns
    /// how many.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn remove_idle_mailboxes(
        &self,
        idle_since: Timestamp,
        now: Timestamp,
        hold_days: u16,
    ) -> Result<u64, StoreError> {
        let removed: i64 = self
            .fetch_value(
                sqlx::query(
                    "/* remove_idle_mailboxes */ SELECT remove_idle_mailboxes($1, $2::integer, $3, $4)",
                )
                .bind(idle_since.to_sqlx())
                .bind(CLEANUP_BATCH)
                .bind(now.to_sqlx())
                .bind(i32::from(hold_days)),
            )
            .await?;
        Ok(removed.unsigned_abs())
    }

    /// Erases the passwords of removed mailboxes whose address is no longer held: they can't be created again. Returns how
    /// many.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn erase_released_passwords(&self, now: Timestamp) -> Result<u64, StoreError> {
        let statement = sqlx::query(
            "/* erase_released_passwords */
            UPDATE mailbox SET password_hash = '!', restorable = false
            WHERE removed_at IS NOT NULL AND held_until <= $1 AND restorable",
        );
        self.affected_rows(statement.bind(now.to_sqlx())).await
    }

    /// Deletes the rows of up to [`CLEANUP_BATCH`] removed mailboxes whose address is no longer held and whose mail
    /// is deleted (which needs the row until then). Returns how many.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn delete_released_mailboxes(&self, now: Timestamp) -> Result<u64, StoreError> {
        self.affected_rows(
            sqlx::query(
                "/* delete_released_mailboxes */
            DELETE FROM mailbox WHERE removed_at IS NOT NULL AND held_until <= $1 AND id IN (
                SELECT b.id FROM mailbox b
                WHERE b.removed_at IS NOT NULL AND b.held_until <= $1
                  AND NOT EXISTS (SELECT FROM purge p WHERE p.inbox = b.id)
                ORDER BY b.held_until LIMIT $2 FOR UPDATE SKIP LOCKED)",
            )
            .bind(now.to_sqlx())
            .bind(CLEANUP_BATCH),
        )
        .await
    }
}
