//! Generations of the stream; see `sql/mail/stream.sql`.

use sqlx::Row as _;
use uuid::Uuid;

use crate::error::StoreError;
use crate::pool::Store;

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

impl Store {
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
        let from_row = |row: &sqlx::postgres::PgRow| {
            Ok(Generation { id: row.try_get("id")?, base: row.try_get("base")? })
        };
        self.fetch_all(sqlx::query(LIST_GENERATIONS), from_row).await
    }
}
