//! API tokens as Kubernetes objects declare them.

use jiff::Timestamp;
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tempmail_model::token::{PlainToken, TokenKind};
use uuid::Uuid;

use super::cluster::{Epoch, activate_row, fenced};
use super::resource::{DeclareResult, declare_result};
use crate::error::StoreError;
use crate::pool::Store;
use crate::row::optional_time;

/// The token of an object. It is not revoked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagedToken {
    /// Its id.
    pub id: Uuid,
    /// Its tenant.
    pub tenant: Uuid,
    /// Its last digits.
    pub hint: String,
    /// Its SHA-256.
    pub hash: Vec<u8>,
    /// Whether it is delivered to its owner; an inactive token is refused.
    pub active: bool,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
}

/// A token to create for an object.
#[derive(Debug, Clone, Copy)]
pub struct TokenDeclaration<'a> {
    /// Its id.
    pub id: Uuid,
    /// Its tenant.
    pub tenant: Uuid,
    /// Its kind, which is that of `token`.
    pub kind: TokenKind,
    /// Its name in the list of the tenant.
    pub name: &'a str,
    /// The token; only its hash and its last digits are stored.
    pub token: &'a PlainToken,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// Value of the annotation that requested this new token.
    pub rotate_requested: Option<&'a str>,
}

impl ManagedToken {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.try_get("id")?,
            tenant: row.try_get("tenant")?,
            hint: row.try_get("hint")?,
            hash: row.try_get("hash")?,
            active: row.try_get("active")?,
            expires_at: optional_time(row, "expires_at")?,
        })
    }
}

impl Store {
    /// The token of the object `uid`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_managed_token(&self, uid: Uuid) -> Result<Option<ManagedToken>, StoreError> {
        let statement = sqlx::query(
            "/* find_managed_token */
            SELECT k.id, k.tenant, k.hint, k.hash, k.active, k.expires_at
            FROM resource r JOIN api_token k ON k.id = r.row_id WHERE r.uid = $1 AND k.revoked_at IS NULL",
        );
        self.fetch_optional(statement.bind(uid), ManagedToken::from_row).await
    }

    /// Creates the token of the object `uid`, inactive. The token that it replaces is revoked, and does not count
    /// towards the limit.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn declare_token(
        &self,
        epoch: Epoch,
        uid: Uuid,
        token: TokenDeclaration<'_>,
        now: Timestamp,
    ) -> Result<DeclareResult, StoreError> {
        let statement = epoch.statement(
            "/* declare_token */ SELECT declare_token($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
            uid,
        );
        let statement = statement
            .bind(token.id)
            .bind(token.tenant)
            .bind(token.kind.as_str())
            .bind(token.name)
            .bind(token.token.hint())
            .bind(token.token.hash().as_bytes().as_slice())
            .bind(token.expires_at.map(|at| at.to_sqlx()))
            .bind(token.rotate_requested)
            .bind(now.to_sqlx());
        self.fetch_one(statement, |row| declare_result("declare_token", row)).await
    }

    /// Activates the token `id`, which is delivered to its owner, if it is still the object's.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn activate_token(&self, epoch: Epoch, uid: Uuid, id: Uuid) -> Result<(), StoreError> {
        let statement = epoch.statement(activate_row!("/* activate_token */", "api_token"), uid);
        self.execute(statement.bind(id)).await
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
        let statement = epoch.statement(
            fenced!(
                "/* set_token_expiry */",
                " UPDATE api_token k SET expires_at = $3 FROM resource r
                  WHERE (SELECT locked FROM epoch) AND r.uid = $2 AND k.id = r.row_id"
            ),
            uid,
        );
        self.execute(statement.bind(expires_at.map(|at| at.to_sqlx()))).await
    }

    /// Revokes the token of an object that is no longer accepted.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn revoke_managed_token(
        &self,
        epoch: Epoch,
        uid: Uuid,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let statement =
            epoch.statement("/* revoke_managed_token */ SELECT revoke_managed_token($1, $2, $3)", uid);
        self.execute(statement.bind(now.to_sqlx())).await
    }

    /// Revokes the token of an object that is deleted, ends what was made with its tokens over HTTP, and deletes the
    /// object's row.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing happened.
    pub async fn release_token(&self, epoch: Epoch, uid: Uuid, now: Timestamp) -> Result<(), StoreError> {
        let statement = epoch.statement("/* release_token */ SELECT release_token($1, $2, $3)", uid);
        self.execute(statement.bind(now.to_sqlx())).await
    }
}
