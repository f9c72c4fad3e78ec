//! Columns of rows as values of ours, and pages of lists.

use jiff::Timestamp;
use sqlx::postgres::PgRow;
use sqlx::{Postgres, Row as _};

use crate::error::StoreError;

/// A time.
pub(crate) fn time(row: &PgRow, column: &str) -> Result<Timestamp, StoreError> {
    Ok(row.try_get::<jiff_sqlx::Timestamp, _>(column)?.to_jiff())
}

/// A time that may be null.
pub(crate) fn optional_time(row: &PgRow, column: &str) -> Result<Option<Timestamp>, StoreError> {
    Ok(row.try_get::<Option<jiff_sqlx::Timestamp>, _>(column)?.map(jiff_sqlx::Timestamp::to_jiff))
}

/// The first column.
pub(crate) fn first_column<T>(row: &PgRow) -> Result<T, StoreError>
where
    T: for<'r> sqlx::Decode<'r, Postgres> + sqlx::Type<Postgres>,
{
    Ok(row.try_get(0)?)
}

/// How many rows come before a page of `size` rows; pages count from 1. `tempmail token` reads all of them, so where lists
/// of the HTTP interface end is not decided here.
pub(crate) fn rows_before(page: i64, size: i64) -> i64 {
    // No list has this many pages.
    page.clamp(1, 1 << 32).saturating_sub(1).saturating_mul(size)
}
