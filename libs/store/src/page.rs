//! Pages of lists.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use uuid::Uuid;

use crate::error::StoreError;
use crate::pool::Store;
use crate::row::first_column;

/// Messages that one statement skips. It takes a fraction of a millisecond for them: a longer one would keep Postgres on a
/// core, and what other requests wait for behind it.
const SKIPPED_MAX: i64 = 500;

/// How many rows come before a page of `size` rows; pages count from 1. `tempmail token` reads all of them, so where lists
/// of the HTTP interface end is not decided here.
pub(crate) fn rows_before(page: i64, size: i64) -> i64 {
    // No list has this many pages.
    page.clamp(1, 1 << 32).saturating_sub(1).saturating_mul(size)
}

impl Store {
    /// The position before which a page begins: that of the last of the `skipped` newest messages of an owner (`$1`)
    /// before a position (`$3`); `None` where it has fewer. The statement skips `$4` messages.
    pub(crate) async fn skip_messages(
        &self,
        statement: &'static str,
        owner: Uuid,
        before: i64,
        skipped: i64,
        now: Timestamp,
    ) -> Result<Option<i64>, StoreError> {
        let (mut before, mut left) = (before, skipped);
        while left > 0 {
            let step = left.min(SKIPPED_MAX);
            let query = sqlx::query(statement).bind(owner).bind(now.to_sqlx()).bind(before).bind(step);
            match self.fetch_optional(query, first_column).await? {
                Some(last) => before = last,
                None => return Ok(None),
            }
            left -= step;
        }
        Ok(Some(before))
    }
}
