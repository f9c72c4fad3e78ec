//! API tokens: found by the hash of what a client presents.

use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tempmail_model::id::new_id;
use tempmail_model::token::{PlainToken, TokenHash, TokenKind};
use uuid::Uuid;

use crate::{Store, StoreError};

/// A token with what its tenant lets it do; whether it may act is the caller's to judge.
#[derive(Debug, Clone)]
pub struct ApiToken {
    /// Its id.
    pub id: Uuid,
    /// Whose it is.
    pub tenant: Uuid,
    /// Whether the tenant is suspended.
    pub suspended: bool,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
    /// From when on it is refused.
    pub expires_at: Option<Timestamp>,
    /// Since when it is refused.
    pub revoked_at: Option<Timestamp>,
}

/// A token to be stored.
#[derive(Debug, Clone, Copy)]
pub struct NewToken<'a> {
    /// Whose it will be.
    pub tenant: Uuid,
    /// Which surface it is for; that of `token`.
    pub kind: TokenKind,
    /// What its owner calls it.
    pub name: &'a str,
    /// The token; only its hash and its last digits are stored.
    pub token: &'a PlainToken,
    /// Who made it: a token's id, or the name of a command.
    pub created_by: &'a str,
    /// From when on it will be refused.
    pub expires_at: Option<Timestamp>,
}

impl ApiToken {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        let time = |column| -> Result<Option<Timestamp>, StoreError> {
            Ok(row.try_get::<Option<jiff_sqlx::Timestamp>, _>(column)?.map(jiff_sqlx::Timestamp::to_jiff))
        };
        Ok(Self {
            id: row.try_get("id")?,
            tenant: row.try_get("tenant")?,
            suspended: row.try_get("suspended")?,
            last_used_at: time("last_used_at")?,
            expires_at: time("expires_at")?,
            revoked_at: time("revoked_at")?,
        })
    }
}

/// A token with what its tenant lets it do.
macro_rules! token {
    () => {
        "SELECT k.id, k.tenant, t.suspended, k.last_used_at, k.expires_at, k.revoked_at
         FROM api_token k JOIN tenant t ON t.id = k.tenant WHERE "
    };
}

impl Store {
    /// The token of a kind with this hash, also where it was revoked or has expired.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_token(&self, kind: TokenKind, hash: TokenHash) -> Result<Option<ApiToken>, StoreError> {
        let row = sqlx::query(concat!("/* find_token */ ", token!(), "k.hash = $1 AND k.kind = $2"))
            .bind(hash.as_bytes().as_slice())
            .bind(kind.as_str())
            .fetch_optional(self.pool())
            .await?;
        row.as_ref().map(ApiToken::from_row).transpose()
    }

    /// The token of a kind with this id, also where it was revoked or has expired.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_token_by_id(&self, kind: TokenKind, id: Uuid) -> Result<Option<ApiToken>, StoreError> {
        let row = sqlx::query(concat!("/* find_token_by_id */ ", token!(), "k.id = $1 AND k.kind = $2"))
            .bind(id)
            .bind(kind.as_str())
            .fetch_optional(self.pool())
            .await?;
        row.as_ref().map(ApiToken::from_row).transpose()
    }

    /// Notes that a token was used, unless that was noted less than `step` ago.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn touch_token(
        &self,
        id: Uuid,
        now: Timestamp,
        step: SignedDuration,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "/* touch_token */
            UPDATE api_token SET last_used_at = $2
            WHERE id = $1 AND (last_used_at IS NULL OR last_used_at <= $3)",
        )
        .bind(id)
        .bind(now.to_sqlx())
        .bind((now - step).to_sqlx())
        .execute(self.pool())
        .await?;
        Ok(())
    }

    /// Stores a token and returns its id. The tenant's token limit is not looked at.
    ///
    /// # Errors
    /// [`StoreError`]; also where there is no such tenant.
    pub async fn insert_token(&self, new: NewToken<'_>, now: Timestamp) -> Result<Uuid, StoreError> {
        let id = new_id(now);
        sqlx::query(
            "/* insert_token */
            INSERT INTO api_token (id, tenant, kind, name, hint, hash, created_by, created_at, expires_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        )
        .bind(id)
        .bind(new.tenant)
        .bind(new.kind.as_str())
        .bind(new.name)
        .bind(new.token.hint())
        .bind(new.token.hash().as_bytes().as_slice())
        .bind(new.created_by)
        .bind(now.to_sqlx())
        .bind(new.expires_at.map(|at| at.to_sqlx()))
        .execute(self.pool())
        .await?;
        Ok(id)
    }
}
