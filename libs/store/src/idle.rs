//! Things that end by themselves: mailboxes nobody uses, and addresses whose hold is over.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use tempmail_model::id::new_id;
use uuid::Uuid;

use crate::{Store, StoreError};

/// Rows that one statement here touches at most.
pub const UPKEEP_BATCH: i64 = 100;

impl Store {
    /// Removes up to [`UPKEEP_BATCH`] free mailboxes that were last seen before `idle_since`,
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
        let purge_ids: Vec<Uuid> = (0..UPKEEP_BATCH).map(|_| new_id(now)).collect();
        let mut transaction = self.pool().begin().await?;
        // The stream's row first: no mail is under way to these mailboxes then, and `up_to_seq`
        // covers all of theirs. The look before it costs nothing where nobody is idle.
        let some: bool = sqlx::query_scalar(
            "/* remove_idle_mailboxes */
            SELECT EXISTS (SELECT FROM mailbox WHERE tenant IS NULL AND removed_at IS NULL AND seen_at < $1)",
        )
        .bind(idle_since.to_sqlx())
        .fetch_one(&mut *transaction)
        .await?;
        if !some {
            return Ok(0);
        }
        let seq: i64 = sqlx::query_scalar("/* remove_idle_mailboxes */ SELECT seq FROM stream FOR UPDATE")
            .fetch_one(&mut *transaction)
            .await?;
        let removed = sqlx::query(
            "/* remove_idle_mailboxes */
            WITH idle AS (
                SELECT id FROM mailbox WHERE tenant IS NULL AND removed_at IS NULL AND seen_at < $1
                ORDER BY seen_at LIMIT $2 FOR UPDATE SKIP LOCKED
            ), removed AS (
                UPDATE mailbox b SET removed_at = $3, held_until = $3::timestamptz + make_interval(days => $4),
                                     password_epoch = b.password_epoch + 1
                FROM idle i WHERE b.id = i.id RETURNING b.id
            )
            INSERT INTO purge (id, inbox, owner, address, up_to_seq)
            SELECT ($5::uuid[])[row_number() OVER ()], id, id, NULL, $6 FROM removed",
        )
        .bind(idle_since.to_sqlx())
        .bind(UPKEEP_BATCH)
        .bind(now.to_sqlx())
        .bind(i32::from(hold_days))
        .bind(purge_ids)
        .bind(seq)
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(removed.rows_affected())
    }

    /// Forgets up to [`UPKEEP_BATCH`] removed mailboxes whose address is no longer held and
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
        .bind(UPKEEP_BATCH)
        .execute(self.pool())
        .await?;
        Ok(deleted.rows_affected())
    }
}
