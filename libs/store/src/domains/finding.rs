//! The columns with the result of the last check of a custom domain.

use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tempmail_model::verification::{Finding, RecordFinding};
use uuid::Uuid;

use crate::error::StoreError;

/// What the last check found for the TXT record.
pub(super) fn txt(row: &PgRow, id: Uuid) -> Result<Option<RecordFinding>, StoreError> {
    found(row, id, "txt_result", "txt_seen")
}

/// What the last check found for the MX record.
pub(super) fn mx(row: &PgRow, id: Uuid) -> Result<Option<RecordFinding>, StoreError> {
    found(row, id, "mx_result", "mx_seen")
}

fn found(
    row: &PgRow,
    id: Uuid,
    column: &'static str,
    seen: &'static str,
) -> Result<Option<RecordFinding>, StoreError> {
    let word: Option<&str> = row.try_get(column)?;
    let Some(word) = word else { return Ok(None) };
    let finding = [Finding::Found, Finding::Missing, Finding::Mismatch, Finding::Unknown]
        .into_iter()
        .find(|finding| finding.as_str() == word)
        .ok_or(StoreError::Inconsistent { table: "domain", column, id })?;
    Ok(Some(RecordFinding { finding, seen: row.try_get(seen)? }))
}
