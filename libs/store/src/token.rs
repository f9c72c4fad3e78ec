//! API tokens: found by the hash of what a client presents, and managed by their tenant.

use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tempmail_model::id::new_id;
use tempmail_model::limits::PAGE_SIZE;
use tempmail_model::token::{PlainToken, TokenHash, TokenKind};
use uuid::Uuid;

use crate::change::{ChangeError, CreateOutcome};
use crate::page::rows_before;
use crate::row::{optional_time, time};
use crate::{Store, StoreError};

/// How long a token that was revoked or has expired is still listed.
pub const ENDED_TOKEN_RETENTION: SignedDuration = SignedDuration::from_hours(7 * 24);

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

/// A token in the list of its tenant.
#[derive(Debug, Clone)]
pub struct ListedToken {
    /// Its id.
    pub id: Uuid,
    /// What its owner calls it.
    pub name: String,
    /// Which surface it is for: `pro` or `live`.
    pub kind: String,
    /// Its last digits.
    pub hint: String,
    /// When it was made.
    pub created_at: Timestamp,
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
        Ok(Self {
            id: row.try_get("id")?,
            tenant: row.try_get("tenant")?,
            suspended: row.try_get("suspended")?,
            last_used_at: optional_time(row, "last_used_at")?,
            expires_at: optional_time(row, "expires_at")?,
            revoked_at: optional_time(row, "revoked_at")?,
        })
    }
}

impl ListedToken {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.try_get("id")?,
            name: row.try_get("name")?,
            kind: row.try_get("kind")?,
            hint: row.try_get("hint")?,
            created_at: time(row, "created_at")?,
            last_used_at: optional_time(row, "last_used_at")?,
            expires_at: optional_time(row, "expires_at")?,
            revoked_at: optional_time(row, "revoked_at")?,
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
    /// The active token of a kind with this hash, also where it was revoked or has expired.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_token(&self, kind: TokenKind, hash: TokenHash) -> Result<Option<ApiToken>, StoreError> {
        let row =
            sqlx::query(concat!("/* find_token */ ", token!(), "k.hash = $1 AND k.kind = $2 AND k.active"))
                .bind(hash.as_bytes().as_slice())
                .bind(kind.as_str())
                .fetch_optional(self.pool())
                .await?;
        row.as_ref().map(ApiToken::from_row).transpose()
    }

    /// The active token of a kind with this id, also where it was revoked or has expired.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find_token_by_id(&self, kind: TokenKind, id: Uuid) -> Result<Option<ApiToken>, StoreError> {
        let row = sqlx::query(concat!(
            "/* find_token_by_id */ ",
            token!(),
            "k.id = $1 AND k.kind = $2 AND k.active"
        ))
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

    /// Makes a token under `id`, unless its tenant has as many as it may: those that are revoked
    /// or have expired do not count.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn create_token(
        &self,
        id: Uuid,
        new: NewToken<'_>,
        now: Timestamp,
    ) -> Result<CreateOutcome, StoreError> {
        let word: String =
            sqlx::query_scalar("/* create_token */ SELECT create_token($1, $2, $3, $4, $5, $6, $7, $8, $9)")
                .bind(id)
                .bind(new.tenant)
                .bind(new.kind.as_str())
                .bind(new.name)
                .bind(new.token.hint())
                .bind(new.token.hash().as_bytes().as_slice())
                .bind(new.created_by)
                .bind(now.to_sqlx())
                .bind(new.expires_at.map(|at| at.to_sqlx()))
                .fetch_one(self.pool())
                .await?;
        CreateOutcome::from_word("create_token", &word)
    }

    /// A page (from 1, 30 tokens) of a tenant's active tokens, newest first: of one kind, or of both.
    /// Those that ended are among them for [`ENDED_TOKEN_RETENTION`].
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list_tokens(
        &self,
        tenant: Uuid,
        kind: Option<TokenKind>,
        page: i64,
        now: Timestamp,
    ) -> Result<Vec<ListedToken>, StoreError> {
        let rows = sqlx::query(
            "/* list_tokens */
            SELECT id, name, kind, hint, created_at, last_used_at, expires_at, revoked_at FROM api_token
            WHERE tenant = $1 AND active AND ($2::text IS NULL OR kind = $2)
              AND (coalesce(revoked_at, expires_at) > $3) IS NOT FALSE
            ORDER BY created_at DESC, id DESC OFFSET $4 LIMIT $5",
        )
        .bind(tenant)
        .bind(kind.map(TokenKind::as_str))
        .bind((now - ENDED_TOKEN_RETENTION).to_sqlx())
        .bind(rows_before(page))
        .bind(PAGE_SIZE)
        .fetch_all(self.pool())
        .await?;
        rows.iter().map(ListedToken::from_row).collect()
    }

    /// Revokes a token of a tenant, of one kind or of either; one that is revoked is not found.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn revoke_token(
        &self,
        tenant: Uuid,
        id: Uuid,
        kind: Option<TokenKind>,
        now: Timestamp,
    ) -> Result<Result<(), ChangeError>, StoreError> {
        let managed_by: Option<String> = sqlx::query_scalar(
            "/* revoke_token */
            WITH found AS (
                SELECT id, managed_by FROM api_token
                WHERE id = $1 AND tenant = $2 AND ($3::text IS NULL OR kind = $3) AND revoked_at IS NULL
                  AND (expires_at > $5) IS NOT FALSE
                FOR NO KEY UPDATE
            ), revoked AS (
                UPDATE api_token k SET revoked_at = $4
                FROM found f WHERE k.id = f.id AND f.managed_by = 'api'
            )
            SELECT managed_by FROM found",
        )
        .bind(id)
        .bind(tenant)
        .bind(kind.map(TokenKind::as_str))
        .bind(now.to_sqlx())
        .bind((now - ENDED_TOKEN_RETENTION).to_sqlx())
        .fetch_optional(self.pool())
        .await?;
        ChangeError::unless_changed(managed_by.as_deref(), "api_token", id)
    }

    /// Deletes the tokens that ended [`ENDED_TOKEN_RETENTION`] ago or earlier. Returns how many.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn delete_ended_tokens(&self, now: Timestamp) -> Result<u64, StoreError> {
        let deleted = sqlx::query(
            "/* delete_ended_tokens */
            DELETE FROM api_token
            WHERE (revoked_at IS NOT NULL OR expires_at IS NOT NULL) AND coalesce(revoked_at, expires_at) <= $1",
        )
        .bind((now - ENDED_TOKEN_RETENTION).to_sqlx())
        .execute(self.pool())
        .await?;
        Ok(deleted.rows_affected())
    }
}
