//! Columns that sqlx has no type of ours for.

use jiff::Timestamp;
use sqlx::Row as _;
use sqlx::postgres::PgRow;

use crate::StoreError;

/// A time.
pub(crate) fn time(row: &PgRow, column: &str) -> Result<Timestamp, StoreError> {
    Ok(row.try_get::<jiff_sqlx::Timestamp, _>(column)?.to_jiff())
}

/// A time that may be null.
pub(crate) fn optional_time(row: &PgRow, column: &str) -> Result<Option<Timestamp>, StoreError> {
    Ok(row.try_get::<Option<jiff_sqlx::Timestamp>, _>(column)?.map(jiff_sqlx::Timestamp::to_jiff))
}
