//! The feed of changes (table `change`), polled together with the position of the stream.

use std::time::Duration;

use sqlx::Row as _;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use crate::error::StoreError;
use crate::pool::Store;

/// Each row of `change` is read once: it is visible in the snapshot of this poll, and not in that of the previous
/// one. Rows of transactions that ended before the previous poll started are not read.
const POLL_STREAM: &str = "/* poll_stream */
    SELECT s.seq, s.generation, s.history <> server_history() AS server_changed,
           pg_current_snapshot()::text AS snapshot, ARRAY(
        SELECT DISTINCT c.subject FROM change c
        WHERE c.xid >= pg_snapshot_xmin($1::text::pg_snapshot)
          AND NOT pg_visible_in_snapshot(c.xid, $1::text::pg_snapshot)
    ) AS changed
    FROM stream s WHERE s.singleton";

/// How long a change is kept in the feed. A reader that did not poll for longer misses changes.
pub const CHANGE_RETENTION: Duration = Duration::from_secs(10 * 60);

const DELETE_OLD_CHANGES: &str = "/* delete_old_changes */
    DELETE FROM change WHERE changed_at < now() - make_interval(secs => $1) /* lease */";

/// The result of a poll.
#[derive(Debug, Clone)]
pub struct StreamHead {
    /// The position of the newest committed message.
    pub position: i64,
    /// The generation that it belongs to.
    pub generation: Uuid,
    /// Whether the server is another one than that of the generation, or has another history.
    server_changed: bool,
    /// Tenants, tokens, mailboxes, domains, webhooks and keys of addresses that changed since the last poll.
    pub changed: Vec<Uuid>,
    /// The snapshot to pass to the next poll.
    pub snapshot: ChangeSnapshot,
}

/// Which changes a poll has read.
#[derive(Debug, Clone)]
pub struct ChangeSnapshot {
    text: String,
    /// Transactions are counted anew in another generation: there the snapshot says nothing.
    generation: Uuid,
}

impl ChangeSnapshot {
    /// Whether the changes between the snapshots are known.
    pub fn shares_generation_with(&self, later: &Self) -> bool {
        self.generation == later.generation
    }
}

impl StreamHead {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        let generation = row.try_get("generation")?;
        Ok(Self {
            position: row.try_get("seq")?,
            generation,
            server_changed: row.try_get("server_changed")?,
            changed: row.try_get("changed")?,
            snapshot: ChangeSnapshot { text: row.try_get("snapshot")?, generation },
        })
    }
}

impl Store {
    /// Reads the position of the stream, and the changes since the poll with the snapshot `last`; none without it. They
    /// are not known where the snapshots are of different generations. Begins a generation first where the server changed,
    /// as [`Self::ensure_generation`] does.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn poll_stream(&self, last: Option<&ChangeSnapshot>) -> Result<StreamHead, StoreError> {
        let head = self.read_stream(last).await?;
        if !head.server_changed {
            return Ok(head);
        }
        // The changes and the snapshot are of transactions that two servers counted.
        self.ensure_generation().await?;
        self.read_stream(None).await
    }

    async fn read_stream(&self, last: Option<&ChangeSnapshot>) -> Result<StreamHead, StoreError> {
        let statement = sqlx::query(POLL_STREAM).bind(last.map(|last| &last.text));
        self.fetch_one(statement, StreamHead::from_row).await
    }

    /// Deletes changes older than [`CHANGE_RETENTION`]; returns how many.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn delete_old_changes(&self) -> Result<u64, StoreError> {
        self.affected_rows(sqlx::query(DELETE_OLD_CHANGES).bind(CHANGE_RETENTION.as_secs_f64())).await
    }
}
