//! The stream of all messages: its id, its generations (see `sql/mail/stream.sql`), and the messages that a reader of
//! hints has missed.

use std::sync::LazyLock;

use jiff::Timestamp;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tempmail_model::id::lowest_id;
use tempmail_model::message::Arrival;
use tempmail_model::retention::RetentionClass;
use uuid::Uuid;

use super::message::{MessageRow, message_columns};
use super::partition::{class_of, each_class};
use crate::error::StoreError;
use crate::pool::Store;

static LIST_ARRIVALS: LazyLock<String> = LazyLock::new(|| {
    let arms = each_class(|class| {
        format!(
            "SELECT seq, id, class, tenant, owner, inbox FROM message
             WHERE class = {class} AND id >= $3 AND seq > $1 AND seq <= $2"
        )
    });
    format!("/* list_arrivals */ {arms}")
});

const LIST_MESSAGES_BY_ID: &str = concat!(
    "/* list_messages_by_id */ SELECT s.generation, ",
    message_columns!(),
    " FROM stream s
    LEFT JOIN visible_message m ON m.class = $1 AND m.id >= $2 AND m.id <= $3 AND m.id = ANY ($4)
    WHERE s.singleton"
);

pub(super) const ENSURE_GENERATION: &str = "/* ensure_generation */ SELECT ensure_generation()";

const LIST_GENERATIONS: &str =
    "/* list_generations */ SELECT id, base FROM stream_generation ORDER BY ordinal";

/// A generation of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation {
    /// Its id.
    pub id: Uuid,
    /// The last position when it began: what was numbered above it before is lost.
    pub base: i64,
}

/// Messages of the stream.
#[derive(Debug, Clone)]
pub struct StreamMessages {
    /// The generation of the stream that their positions belong to.
    pub generation: Uuid,
    /// In no order.
    pub rows: Vec<MessageRow>,
}

impl Store {
    /// The id of this database's stream. Hints name it, because several installations may share a Redis.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn stream_id(&self) -> Result<Uuid, StoreError> {
        self.fetch_value(sqlx::query("/* stream_id */ SELECT id FROM stream WHERE singleton")).await
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
        self.fetch_all(
            sqlx::query(LIST_ARRIVALS.as_str()).bind(after).bind(up_to).bind(lowest_id(accepted_since)),
            arrival,
        )
        .await
    }

    /// Those of these messages of one class that are not deleted.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_messages_by_id(
        &self,
        class: RetentionClass,
        ids: &[Uuid],
    ) -> Result<StreamMessages, StoreError> {
        let statement = sqlx::query(LIST_MESSAGES_BY_ID)
            .bind(class.hours())
            .bind(ids.iter().min())
            .bind(ids.iter().max())
            .bind(ids);
        let rows = self.fetch_rows(statement).await?;
        let first = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        Ok(StreamMessages {
            generation: first.try_get("generation")?,
            rows: MessageRow::from_left_join(&rows)?,
        })
    }

    /// Begins a generation if the server is another one than that of the current generation, or has another history.
    ///
    /// # Errors
    /// [`StoreError`]; a standby is unavailable.
    pub async fn ensure_generation(&self) -> Result<(), StoreError> {
        self.execute(sqlx::query(ENSURE_GENERATION)).await
    }

    /// All generations, oldest first; at least one. The last is the current one.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_generations(&self) -> Result<Vec<Generation>, StoreError> {
        let from_row = |row: &PgRow| Ok(Generation { id: row.try_get("id")?, base: row.try_get("base")? });
        self.fetch_all(sqlx::query(LIST_GENERATIONS), from_row).await
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
