//! What the worker does to stored mail: slots ahead of time, slots that are over, and
//! deletions carried out in batches. Several workers at once are harmless.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::{PgConnection, Row as _};
use tempmail_model::id::lowest_id;
use tempmail_model::retention::RetentionClass;
use uuid::Uuid;

use crate::row::time;
use crate::{Store, StoreError};

/// Messages that one batch of a purge deletes at most.
pub const PURGE_BATCH: i64 = 500;

/// Rows of usage that one statement forgets at most.
pub const USAGE_BATCH: u64 = 50_000;

/// A pair of partitions: the mail of one class that arrived in one stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotKey {
    /// Retention of its mail.
    pub class: RetentionClass,
    /// Its first moment.
    pub starts: Timestamp,
}

/// What one batch of a purge came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PurgeStep {
    /// It is carried out, or another worker has it in hand.
    Done(u64),
    /// So many messages were deleted; more may be waiting.
    Deleted(u64),
}

impl Store {
    /// Which of these slots are not there.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_missing_slots(&self, wanted: &[SlotKey]) -> Result<Vec<SlotKey>, StoreError> {
        let classes: Vec<i16> = wanted.iter().map(|slot| slot.class.hours()).collect();
        let starts: Vec<_> = wanted.iter().map(|slot| slot.starts.to_sqlx()).collect();
        let rows = sqlx::query(
            "/* list_missing_slots */
            SELECT w.class, w.starts FROM unnest($1::smallint[], $2::timestamptz[]) AS w (class, starts)
            WHERE NOT EXISTS (SELECT FROM slot s WHERE s.class = w.class AND s.starts = w.starts)
            ORDER BY w.starts, w.class",
        )
        .bind(classes)
        .bind(starts)
        .fetch_all(self.pool())
        .await?;
        rows.iter().map(slot_key).collect()
    }

    /// How many slots are attached.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn count_slots(&self) -> Result<i64, StoreError> {
        Ok(sqlx::query_scalar("/* count_slots */ SELECT count(*) FROM slot").fetch_one(self.pool()).await?)
    }

    /// The slots whose youngest possible message has expired, oldest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_expired_slots(&self, now: Timestamp) -> Result<Vec<SlotKey>, StoreError> {
        let rows = sqlx::query(
            "/* list_expired_slots */
            SELECT class, starts FROM slot WHERE ends + make_interval(hours => class) <= $1
            ORDER BY ends + make_interval(hours => class), class",
        )
        .bind(now.to_sqlx())
        .fetch_all(self.pool())
        .await?;
        rows.iter().map(slot_key).collect()
    }

    /// Forgets what a slot whose mail has expired added to the sums of octets, up to
    /// [`USAGE_BATCH`] rows; returns how many. Sums leave such a slot out already.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn forget_usage(&self, slot: SlotKey) -> Result<u64, StoreError> {
        let deleted = sqlx::query(
            "/* forget_usage */
            DELETE FROM usage WHERE ctid = ANY (ARRAY(
                SELECT ctid FROM usage WHERE class = $1 AND slot = $2 LIMIT $3))",
        )
        .bind(slot.class.hours())
        .bind(slot.starts.to_sqlx())
        .bind(USAGE_BATCH.cast_signed())
        .execute(self.pool())
        .await?;
        Ok(deleted.rows_affected())
    }

    /// Takes a slot out of the tables; `false` where somebody held a lock for 10 ms.
    ///
    /// Detaching needs the parents for itself for an instant, and whoever waits for that
    /// makes all mail wait behind it: so it gives up early, and the caller tries again later.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn detach_slot(&self, slot: SlotKey) -> Result<bool, StoreError> {
        let mut transaction = self.pool().begin().await?;
        sqlx::query("SET LOCAL lock_timeout = '10ms'").execute(&mut *transaction).await?;
        let detached = sqlx::query("/* detach_slot */ SELECT detach_slot($1, $2)")
            .bind(slot.class.hours())
            .bind(slot.starts.to_sqlx())
            .execute(&mut *transaction)
            .await;
        match detached {
            Ok(_) => {
                transaction.commit().await?;
                Ok(true)
            }
            Err(error) if waited_in_vain(&error) => {
                transaction.rollback().await?;
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Drops the tables of detached slots and so frees their space; returns how many tables.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn drop_detached_slots(&self) -> Result<i32, StoreError> {
        Ok(sqlx::query_scalar("/* drop_detached_slots */ SELECT drop_detached()")
            .fetch_one(self.pool())
            .await?)
    }

    /// The purges that are waiting, oldest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_purges(&self) -> Result<Vec<Uuid>, StoreError> {
        Ok(sqlx::query_scalar("/* list_purges */ SELECT id FROM purge ORDER BY id LIMIT 1000")
            .fetch_all(self.pool())
            .await?)
    }

    /// Deletes one batch of a purge in one transaction; the purge goes with its last message.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing of the batch happened.
    pub async fn purge_batch(&self, purge: Uuid) -> Result<PurgeStep, StoreError> {
        let mut transaction = self.pool().begin().await?;
        let row = sqlx::query(
            "/* purge_batch */
            SELECT inbox, owner, address, up_to_seq FROM purge WHERE id = $1 FOR UPDATE SKIP LOCKED",
        )
        .bind(purge)
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(row) = row else { return Ok(PurgeStep::Done(0)) };
        let classes: Vec<i16> =
            sqlx::query_scalar("/* purge_batch */ SELECT DISTINCT class FROM slot ORDER BY 1")
                .fetch_all(&mut *transaction)
                .await?;
        let mut left = PURGE_BATCH;
        for class in classes {
            left -= delete_purged(&mut transaction, &row, class, left).await?;
            if left == 0 {
                break;
            }
        }
        if left > 0 {
            sqlx::query("/* purge_batch */ DELETE FROM purge WHERE id = $1")
                .bind(purge)
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await?;
        let deleted = u64::try_from(PURGE_BATCH - left).unwrap_or(0);
        Ok(if left > 0 { PurgeStep::Done(deleted) } else { PurgeStep::Deleted(deleted) })
    }
}

/// Deletes up to `most` messages of one class that the purge names; returns how many. Where
/// the inbox is the owner itself, that is also the mail of a custom domain to any address.
async fn delete_purged(
    connection: &mut PgConnection,
    purge: &sqlx::postgres::PgRow,
    class: i16,
    most: i64,
) -> Result<i64, StoreError> {
    let ids: Vec<Uuid> = sqlx::query_scalar(
        "/* delete_purged */
        SELECT m.id FROM message m
        WHERE m.class = $1 AND m.inbox = $2 AND m.owner = $3 AND m.seq <= $4
          AND ($5::text IS NULL OR m.address = $5)
        UNION ALL
        SELECT m.id FROM message m
        WHERE m.class = $1 AND m.owner_kind = 2 AND m.owner = $3 AND $2 = $3 AND m.seq <= $4
        LIMIT $6",
    )
    .bind(class)
    .bind(purge.try_get::<Uuid, _>("inbox")?)
    .bind(purge.try_get::<Uuid, _>("owner")?)
    .bind(purge.try_get::<i64, _>("up_to_seq")?)
    .bind(purge.try_get::<Option<String>, _>("address")?)
    .bind(most)
    .fetch_all(&mut *connection)
    .await?;
    if ids.is_empty() {
        return Ok(0);
    }
    let found = i64::try_from(ids.len()).unwrap_or(most);
    sqlx::query("/* delete_purged */ SELECT delete_messages($1, $2)")
        .bind(class)
        .bind(ids)
        .execute(connection)
        .await?;
    Ok(found)
}

fn slot_key(row: &sqlx::postgres::PgRow) -> Result<SlotKey, StoreError> {
    Ok(SlotKey { class: retention_class(row.try_get("class")?)?, starts: time(row, "starts")? })
}

fn retention_class(hours: i16) -> Result<RetentionClass, StoreError> {
    RetentionClass::try_from(hours).map_err(|_unknown| StoreError::Inconsistent {
        table: "slot",
        column: "class",
        id: lowest_id(Timestamp::UNIX_EPOCH),
    })
}

/// `lock_timeout` has passed, or the wait was a circle.
fn waited_in_vain(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|database| database.code());
    matches!(code.as_deref(), Some("55P03" | "40P01"))
}
