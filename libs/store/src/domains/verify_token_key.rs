//! The key of verify tokens, sealed.

use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tempmail_model::verify_token::SealedVerifyTokenKey;

use crate::error::StoreError;
use crate::pool::Store;

fn from_row(row: &PgRow) -> Result<SealedVerifyTokenKey, StoreError> {
    Ok(SealedVerifyTokenKey { kid: row.try_get("kid")?, sealed: row.try_get("sealed")? })
}

impl Store {
    /// Keeps `generated` unless a key is kept already; returns the one that is kept, whoever kept it first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn ensure_verify_token_key(
        &self,
        generated: &SealedVerifyTokenKey,
    ) -> Result<SealedVerifyTokenKey, StoreError> {
        let statement = sqlx::query(
            "/* ensure_verify_token_key */
            SELECT k.o_kid AS kid, k.o_sealed AS sealed FROM ensure_verify_token_key($1, $2) k",
        );
        self.fetch_one(statement.bind(&generated.kid).bind(&generated.sealed), from_row).await
    }

    /// The key, if a process has needed one so far.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_verify_token_key(&self) -> Result<Option<SealedVerifyTokenKey>, StoreError> {
        let statement = "/* find_verify_token_key */ SELECT k.kid, k.sealed FROM verify_token_key k";
        self.fetch_optional(sqlx::query(statement), from_row).await
    }

    /// Keeps the same key sealed with another one, unless it is no longer sealed as in `former`; returns whether it is
    /// kept.
    ///
    /// # Errors
    /// [`StoreError`].
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
