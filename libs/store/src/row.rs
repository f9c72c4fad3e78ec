//! Columns of rows as values of ours.

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
