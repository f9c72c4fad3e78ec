//! Domains: those of the installation, and custom domains of tenants with their verification.

pub(crate) mod check;
pub(crate) mod custom;
pub(crate) mod system;

use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tempmail_model::verification::{Finding, RecordFinding};
use tempmail_model::verify_token::SealedVerifyTokenKey;
use uuid::Uuid;

use crate::error::StoreError;
use crate::pool::Store;

/// What the last check of a custom domain found for the TXT record.
fn txt_finding(row: &PgRow, id: Uuid) -> Result<Option<RecordFinding>, StoreError> {
    finding(row, id, "txt_result", "txt_seen")
}

/// What the last check of a custom domain found for the MX record.
fn mx_finding(row: &PgRow, id: Uuid) -> Result<Option<RecordFinding>, StoreError> {
    finding(row, id, "mx_result", "mx_seen")
}

fn finding(
    row: &PgRow,
    id: Uuid,
    column: &'static str,
    seen: &'static str,
) -> Result<Option<RecordFinding>, StoreError> {
    let word: Option<&str> = row.try_get(column)?;
    let Some(word) = word else { return Ok(None) };
    let found = [Finding::Found, Finding::Missing, Finding::Mismatch, Finding::Unknown]
        .into_iter()
        .find(|finding| finding.as_str() == word)
        .ok_or(StoreError::Inconsistent { table: "domain", column, id })?;
    Ok(Some(RecordFinding { finding: found, seen: row.try_get(seen)? }))
}

fn key_from_row(row: &PgRow) -> Result<SealedVerifyTokenKey, StoreError> {
    Ok(SealedVerifyTokenKey { kid: row.try_get("kid")?, sealed: row.try_get("sealed")? })
}

impl Store {
    /// Keeps `generated` as the key of verify tokens, unless a key is kept already; returns the one that is kept,
    /// whoever kept it first.
    pub async fn ensure_verify_token_key(
        &self,
        generated: &SealedVerifyTokenKey,
    ) -> Result<SealedVerifyTokenKey, StoreError> {
        let statement = sqlx::query(
            "/* ensure_verify_token_key */
            SELECT k.o_kid AS kid, k.o_sealed AS sealed FROM ensure_verify_token_key($1, $2) k",
        );
        self.fetch_one(statement.bind(&generated.kid).bind(&generated.sealed), key_from_row).await
    }

    /// The key of verify tokens, if a process has needed one so far.
    pub async fn find_verify_token_key(&self) -> Result<Option<SealedVerifyTokenKey>, StoreError> {
        let statement = "/* find_verify_token_key */ SELECT k.kid, k.sealed FROM verify_token_key k";
        self.fetch_optional(sqlx::query(statement), key_from_row).await
    }

    /// Keeps the same key of verify tokens sealed with another one, unless it is no longer sealed as in `former`;
    /// returns whether it is kept.
    pub async fn reseal_verify_token_key(
        &self,
        former: &SealedVerifyTokenKey,
        resealed: &SealedVerifyTokenKey,
    ) -> Result<bool, StoreError> {
        let statement = sqlx::query(
            "/* reseal_verify_token_key */ UPDATE verify_token_key SET kid = $2, sealed = $3 WHERE sealed = $1",
        );
        let statement = statement.bind(&former.sealed).bind(&resealed.kid).bind(&resealed.sealed);
        Ok(self.affected_rows(statement).await? > 0)
    }
}
