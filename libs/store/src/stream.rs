//! The one stream: where it stands, what changed beside it, and which arrivals a reader of
//! hints has missed.

use std::sync::LazyLock;
use std::time::Duration;

use jiff::Timestamp;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tempmail_model::id::lowest_id;
use tempmail_model::message::Arrival;
use tempmail_model::retention::RetentionClass;
use uuid::Uuid;

use crate::message::{MessageRow, class_of, each_class};
use crate::{Store, StoreError};

/// Each row of `change` is met once: it shows in the snapshot of this poll, and not in that of the
/// poll before. Rows of transactions that ended before that poll began are not read.
const POLL_STREAM: &str = "/* poll_stream */
    SELECT s.seq, pg_current_snapshot()::text AS snapshot, ARRAY(
        SELECT DISTINCT c.subject FROM change c
        WHERE c.xid >= pg_snapshot_xmin($1::text::pg_snapshot)
          AND NOT pg_visible_in_snapshot(c.xid, $1::text::pg_snapshot)
    ) AS changed
    FROM stream s WHERE s.one";

static LIST_ARRIVALS: LazyLock<String> = LazyLock::new(|| {
    let arms = each_class(|class| {
        format!(
            "SELECT seq, id, class, tenant, owner, inbox FROM message
             WHERE class = {class} AND id >= $3 AND seq > $1 AND seq <= $2"
        )
    });
    format!("/* list_arrivals */ {arms}")
});

const LIST_ARRIVED: &str = "/* list_messages_by_id */
    SELECT m.* FROM visible_message m
    WHERE m.class = $1 AND m.id >= $2 AND m.id <= $3 AND m.id = ANY ($4)";

/// How long a change is kept in the feed: whoever has not looked for longer does not know what
/// changed.
pub const CHANGE_RETENTION: Duration = Duration::from_secs(10 * 60);

const FORGET_CHANGES: &str = "/* delete_old_changes */
    DELETE FROM change WHERE changed_at < now() - make_interval(secs => $1) /* lease */";

/// What a poll of the stream saw.
#[derive(Debug, Clone)]
pub struct StreamHead {
    /// The position of the newest committed message.
    pub position: i64,
    /// Tenants, tokens, mailboxes, domains and keys of addresses whose rights changed since the
    /// last poll.
    pub changed: Vec<Uuid>,
    /// What tells the next poll which changes are new.
    pub snapshot: Snapshot,
}

/// What a poll saw of the feed of changes.
#[derive(Debug, Clone)]
pub struct Snapshot(String);

impl Store {
    /// The id of this database's stream: what tells of places in it is meant for its readers only.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn stream_id(&self) -> Result<Uuid, StoreError> {
        Ok(sqlx::query_scalar("/* stream_id */ SELECT id FROM stream WHERE one")
            .fetch_one(self.pool())
            .await?)
    }

    /// Reads the position of the stream and the changes since the last poll; without one there are none.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn poll_stream(&self, last: Option<&Snapshot>) -> Result<StreamHead, StoreError> {
        let row =
            sqlx::query(POLL_STREAM).bind(last.map(|Snapshot(text)| text)).fetch_one(self.pool()).await?;
        Ok(StreamHead {
            position: row.try_get("seq")?,
            changed: row.try_get("changed")?,
            snapshot: Snapshot(row.try_get("snapshot")?),
        })
    }

    /// Forgets changes that everybody has seen who looks at all; returns how many.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn delete_old_changes(&self) -> Result<u64, StoreError> {
        let kept = CHANGE_RETENTION.as_secs_f64();
        Ok(sqlx::query(FORGET_CHANGES).bind(kept).execute(self.pool()).await?.rows_affected())
    }

    /// The messages of `after < seq <= up_to` that were accepted since `accepted_since`, in
    /// no order. The caller bounds the range.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_arrivals(
        &self,
        after: i64,
        up_to: i64,
        accepted_since: Timestamp,
    ) -> Result<Vec<Arrival>, StoreError> {
        let rows = sqlx::query(LIST_ARRIVALS.as_str())
            .bind(after)
            .bind(up_to)
            .bind(lowest_id(accepted_since))
            .fetch_all(self.pool())
            .await?;
        rows.iter().map(arrival).collect()
    }

    /// Those messages of one class that were not deleted since, in no order.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_messages_by_id(
        &self,
        class: RetentionClass,
        ids: &[Uuid],
    ) -> Result<Vec<MessageRow>, StoreError> {
        let rows = sqlx::query(LIST_ARRIVED)
            .bind(class.hours())
            .bind(ids.iter().min())
            .bind(ids.iter().max())
            .bind(ids)
            .fetch_all(self.pool())
            .await?;
        rows.iter().map(MessageRow::from_row).collect()
    }
}

fn arrival(row: &PgRow) -> Result<Arrival, StoreError> {
    let id = row.try_get("id")?;
    Ok(Arrival {
        seq: row.try_get("seq")?,
        id,
        class: class_of(row.try_get("class")?, id)?,
        tenant: row.try_get("tenant")?,
        owner: row.try_get("owner")?,
        inbox: row.try_get("inbox")?,
    })
}
