//! What a check found of a custom domain's records, as it is kept.

use sqlx::Row as _;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use crate::StoreError;

/// What the servers that voted found of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// Every voting server has it.
    Found,
    /// A voting server has nothing in its place.
    Missing,
    /// A voting server has something else in its place.
    Mismatch,
    /// Nobody voted.
    Unknown,
}

/// What was found of one record, and what was seen in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordFound {
    /// What was found.
    pub finding: Finding,
    /// What the servers have that have something else: at most 5 texts of at most 255 characters,
    /// without control characters, sorted, each once. Empty unless it is [`Finding::Mismatch`].
    pub seen: Vec<String>,
}

/// What a check found of both records.
#[derive(Debug, Clone, Copy)]
pub struct RecordsFound<'a> {
    /// The TXT record.
    pub txt: &'a RecordFound,
    /// The MX record.
    pub mx: &'a RecordFound,
}

impl Finding {
    /// The word for it in metrics and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Found => "found",
            Self::Missing => "missing",
            Self::Mismatch => "mismatch",
            Self::Unknown => "unknown",
        }
    }
}

impl RecordFound {
    /// Nobody voted.
    pub const UNKNOWN: Self = Self { finding: Finding::Unknown, seen: Vec::new() };
}

/// What a row says was found of its TXT record.
pub(super) fn txt(row: &PgRow, id: Uuid) -> Result<Option<RecordFound>, StoreError> {
    found(row, id, "txt_result", "txt_seen")
}

/// What a row says was found of its MX record.
pub(super) fn mx(row: &PgRow, id: Uuid) -> Result<Option<RecordFound>, StoreError> {
    found(row, id, "mx_result", "mx_seen")
}

fn found(
    row: &PgRow,
    id: Uuid,
    column: &'static str,
    seen: &'static str,
) -> Result<Option<RecordFound>, StoreError> {
    let word: Option<&str> = row.try_get(column)?;
    let Some(word) = word else { return Ok(None) };
    let finding = [Finding::Found, Finding::Missing, Finding::Mismatch, Finding::Unknown]
        .into_iter()
        .find(|finding| finding.as_str() == word)
        .ok_or(StoreError::Inconsistent { table: "domain", column, id })?;
    Ok(Some(RecordFound { finding, seen: row.try_get(seen)? }))
}
