//! Rows: their columns as values of ours, pages of lists, and who manages a row of a tenant (its tenant over HTTP, or
//! a Kubernetes object) and what comes of creating and changing it.

use jiff::Timestamp;
use sqlx::postgres::PgRow;
use sqlx::{Postgres, Row as _};
use uuid::Uuid;

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

/// How many rows come before a page of `size` rows; pages count from 1. `tempmail token` reads all of them, so where
/// lists of the HTTP interface end is not decided here.
pub(crate) fn rows_before(page: i64, size: i64) -> i64 {
    // No list has this many pages.
    page.clamp(1, 1 << 32).saturating_sub(1).saturating_mul(size)
}

/// What came of creating a row of which a tenant may have a limited number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreateOutcome {
    /// It was created.
    Created,
    /// The tenant has reached its limit.
    LimitReached,
    /// The tenant is suspended or removed.
    TenantDisabled,
}

impl CreateOutcome {
    /// The answer of the SQL function `function`.
    pub(crate) fn from_row(function: &'static str, row: &PgRow) -> Result<Self, StoreError> {
        match row.try_get(0)? {
            "created" => Ok(Self::Created),
            "limit_reached" => Ok(Self::LimitReached),
            "tenant_disabled" => Ok(Self::TenantDisabled),
            word => Err(StoreError::unknown_word(function, word)),
        }
    }
}

/// Who may change a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManagedBy {
    /// Its tenant, over HTTP; the administrator, if it is the installation's.
    Api,
    /// The operator, by a Kubernetes object.
    Kubernetes,
}

impl ManagedBy {
    /// The word for it in the interface and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Kubernetes => "kubernetes",
        }
    }

    /// Reads the column `managed_by` of the row `id` of `table`.
    pub(crate) fn from_word(word: &str, table: &'static str, id: Uuid) -> Result<Self, StoreError> {
        [Self::Api, Self::Kubernetes]
            .into_iter()
            .find(|managed_by| managed_by.as_str() == word)
            .ok_or(StoreError::Inconsistent { table, column: "managed_by", id })
    }
}

/// Why a row that a tenant named by id was not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeError {
    /// The tenant has no row of this id.
    NotFound,
    /// A Kubernetes object manages it.
    ManagedByKubernetes,
}

impl ChangeError {
    /// The result of a statement that changes the row `id` of `table` if the API manages it. `managed_by` is
    /// that of the row that it found.
    pub(crate) fn unless_changed(
        managed_by: Option<&str>,
        table: &'static str,
        id: Uuid,
    ) -> Result<Result<(), Self>, StoreError> {
        let Some(word) = managed_by else { return Ok(Err(Self::NotFound)) };
        Ok(match ManagedBy::from_word(word, table, id)? {
            ManagedBy::Kubernetes => Err(Self::ManagedByKubernetes),
            ManagedBy::Api => Ok(()),
        })
    }
}
