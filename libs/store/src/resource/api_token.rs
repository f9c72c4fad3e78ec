//! API tokens as objects declare them.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use tempmail_model::token::{PlainToken, TokenKind};
use uuid::Uuid;

use super::{DeclareResult, Epoch, declare_result};
use crate::row::optional_time;
use crate::{Store, StoreError};

/// A token that an object has, and that was not revoked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagedToken {
    /// Its id.
    pub id: Uuid,
    /// Whose it is.
    pub tenant: Uuid,
    /// Its last digits.
    pub hint: String,
    /// SHA-256 of it.
    pub hash: Vec<u8>,
    /// Whether its owner has it; one that is not active is refused.
    pub active: bool,
    /// From when on it is refused.
    pub expires_at: Option<Timestamp>,
}

/// A token to be made for an object.
#[derive(Debug, Clone, Copy)]
pub struct TokenDeclaration<'a> {
    /// Its id.
    pub id: Uuid,
    /// Whose it will be.
    pub tenant: Uuid,
    /// Which surface it is for; that of `token`.
    pub kind: TokenKind,
    /// What it is called in the tenant's list.
    pub name: &'a str,
    /// The token; only its hash and its last digits are stored.
    pub token: &'a PlainToken,
    /// From when on it will be refused.
    pub expires_at: Option<Timestamp>,
    /// What asked for another one: the annotation's value.
    pub rotate_requested: Option<&'a str>,
}

impl Store {
    /// The token of the object `uid`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_managed_token(&self, uid: Uuid) -> Result<Option<ManagedToken>, StoreError> {
        let row = sqlx::query(
            "/* find_managed_token */
            SELECT k.id, k.tenant, k.hint, k.hash, k.active, k.expires_at
            FROM resource r JOIN api_token k ON k.id = r.row_id WHERE r.uid = $1 AND k.revoked_at IS NULL",
        )
        .bind(uid)
        .fetch_optional(self.pool())
        .await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(ManagedToken {
            id: row.try_get("id")?,
            tenant: row.try_get("tenant")?,
            hint: row.try_get("hint")?,
            hash: row.try_get("hash")?,
            active: row.try_get("active")?,
            expires_at: optional_time(&row, "expires_at")?,
        }))
    }

    /// Makes the token of the object `uid`, inactive. One that it has already ends, and does not
    /// count.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn declare_token(
        &self,
        epoch: Epoch,
        uid: Uuid,
        new: TokenDeclaration<'_>,
        now: Timestamp,
    ) -> Result<DeclareResult, StoreError> {
        let word: String = sqlx::query_scalar(
            "/* declare_token */ SELECT declare_token($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        )
        .bind(epoch.0)
        .bind(uid)
        .bind(new.id)
        .bind(new.tenant)
        .bind(new.kind.as_str())
        .bind(new.name)
        .bind(new.token.hint())
        .bind(new.token.hash().as_bytes().as_slice())
        .bind(new.expires_at.map(|at| at.to_sqlx()))
        .bind(new.rotate_requested)
        .bind(now.to_sqlx())
        .fetch_one(self.pool())
        .await?;
        declare_result("declare_token", &word)
    }

    /// Activates the token `id`, which its owner has, if it is the object's still.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn activate_token(&self, epoch: Epoch, uid: Uuid, id: Uuid) -> Result<(), StoreError> {
        sqlx::query(under_epoch!(
            "/* activate_token */",
            " UPDATE api_token k SET active = true FROM resource r
              WHERE (SELECT held FROM epoch) AND r.uid = $2 AND r.row_id = $3 AND k.id = $3"
        ))
        .bind(epoch.0)
        .bind(uid)
        .bind(id)
        .execute(self.pool())
        .await?;
        Ok(())
    }

    /// Sets when the object's token expires.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn set_token_expiry(
        &self,
        epoch: Epoch,
        uid: Uuid,
        expires_at: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        sqlx::query(under_epoch!(
            "/* set_token_expiry */",
            " UPDATE api_token k SET expires_at = $3 FROM resource r
              WHERE (SELECT held FROM epoch) AND r.uid = $2 AND k.id = r.row_id"
        ))
        .bind(epoch.0)
        .bind(uid)
        .bind(expires_at.map(|at| at.to_sqlx()))
        .execute(self.pool())
        .await?;
        Ok(())
    }

    /// Ends the token of an object that is not accepted any more.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn revoke_managed_token(
        &self,
        epoch: Epoch,
        uid: Uuid,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        sqlx::query("/* revoke_managed_token */ SELECT revoke_managed_token($1, $2, $3)")
            .bind(epoch.0)
            .bind(uid)
            .bind(now.to_sqlx())
            .execute(self.pool())
            .await?;
        Ok(())
    }

    /// Ends the token of an object that is deleted, and forgets the object.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing happened.
    pub async fn release_token(&self, epoch: Epoch, uid: Uuid, now: Timestamp) -> Result<(), StoreError> {
        sqlx::query("/* release_token */ SELECT release_token($1, $2, $3)")
            .bind(epoch.0)
            .bind(uid)
            .bind(now.to_sqlx())
            .execute(self.pool())
            .await?;
        Ok(())
    }
}
