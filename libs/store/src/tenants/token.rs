//! API tokens: found by the hash of the token that a client sends, and managed by their tenant.

use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tempmail_model::id::new_id;
use tempmail_model::limits::OWNED_PAGE_SIZE;
use tempmail_model::surface::DropInSurface;
use tempmail_model::token::{PlainToken, TokenHash, TokenKind};
use uuid::Uuid;

use crate::error::StoreError;
use crate::pool::Store;
use crate::row::{ChangeError, CreateOutcome, first_column, optional_time, rows_before, time};

/// How long a revoked or expired token is listed.
pub const ENDED_TOKEN_RETENTION: SignedDuration = SignedDuration::from_hours(7 * 24);

/// A token with the state of its tenant; the caller decides whether it is valid.
#[derive(Debug, Clone, Copy)]
pub struct ApiToken {
    /// UUIDv7: it tells when the row was created.
    pub id: Uuid,
    /// Its tenant.
    pub tenant: Uuid,
    /// Whether the tenant is suspended.
    pub suspended: bool,
    /// Whether it may be used: `false` until its owner has it.
    pub active: bool,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// When its sessions have to have begun at the earliest.
    pub sessions_from: Option<Timestamp>,
}

/// A token in the list of its tenant.
#[derive(Debug, Clone)]
pub struct ListedToken {
    /// UUIDv7: it tells when the row was created.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// Its kind: `pro` or `live`.
    pub kind: String,
    /// Its last digits.
    pub hint: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// The names of the drop-in surfaces that it is for; empty: it is for those of its kind.
    pub surfaces: Vec<String>,
}

/// A token to store.
#[derive(Debug, Clone, Copy)]
pub struct NewToken<'a> {
    /// Its tenant.
    pub tenant: Uuid,
    /// Its kind, which is that of `token`.
    pub kind: TokenKind,
    /// Its name.
    pub name: &'a str,
    /// The token; only its hash and its last digits are stored.
    pub token: &'a PlainToken,
    /// The drop-in surfaces that it is for, and for nothing else; none for a token of its kind.
    pub surfaces: &'a [DropInSurface],
    /// What created it: the id of a token, or the name of a command.
    pub created_by: &'a str,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
}

impl NewToken<'_> {
    /// The hash that is stored.
    fn hash(&self) -> TokenHash {
        if self.surfaces.is_empty() { self.token.hash() } else { self.token.surface_hash() }
    }

    fn surface_names(&self) -> Vec<&'static str> {
        self.surfaces.iter().map(|surface| surface.as_str()).collect()
    }
}

impl ApiToken {
    pub(super) fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.try_get("id")?,
            tenant: row.try_get("tenant")?,
            suspended: row.try_get("suspended")?,
            active: row.try_get("active")?,
            last_used_at: optional_time(row, "last_used_at")?,
            expires_at: optional_time(row, "expires_at")?,
            revoked_at: optional_time(row, "revoked_at")?,
            sessions_from: optional_time(row, "sessions_from")?,
        })
    }
}

impl ListedToken {
    pub(crate) fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.try_get("id")?,
            name: row.try_get("name")?,
            kind: row.try_get("kind")?,
            hint: row.try_get("hint")?,
            created_at: time(row, "created_at")?,
            last_used_at: optional_time(row, "last_used_at")?,
            expires_at: optional_time(row, "expires_at")?,
            revoked_at: optional_time(row, "revoked_at")?,
            surfaces: row.try_get("surfaces")?,
        })
    }
}

/// SQL for the columns of a token `k` of a tenant `t` that [`ApiToken`] reads.
macro_rules! token_columns {
    () => {
        "k.id, k.tenant, t.suspended, k.active, k.last_used_at, k.expires_at, k.revoked_at, k.sessions_from"
    };
}
pub(super) use token_columns;

/// SQL for a token with the state of its tenant, and further columns.
macro_rules! token {
    ($further:literal) => {
        concat!(
            "SELECT ",
            $crate::tenants::token::token_columns!(),
            $further,
            " FROM api_token k JOIN tenant t ON t.id = k.tenant WHERE "
        )
    };
}
pub(super) use token;

impl Store {
    /// The token of a kind with this hash; it may be inactive, revoked or expired. `None`: there is none.
    pub async fn find_token(&self, kind: TokenKind, hash: TokenHash) -> Result<Option<ApiToken>, StoreError> {
        self.fetch_optional(
            sqlx::query(concat!("/* find_token */ ", token!(""), "k.hash = $1 AND k.kind = $2"))
                .bind(hash.as_bytes().as_slice())
                .bind(kind.as_str()),
            ApiToken::from_row,
        )
        .await
    }

    /// The token for a drop-in surface with this hash
    /// ([`TokenHash::from_presented_on_surface`]); it may be inactive, revoked or expired. `None`: there is none.
    pub async fn find_surface_token(
        &self,
        surface: DropInSurface,
        hash: TokenHash,
    ) -> Result<Option<ApiToken>, StoreError> {
        let statement = sqlx::query(concat!(
            "/* find_surface_token */ ",
            token!(""),
            "k.hash = $1 AND $2 = ANY (k.surfaces)"
        ));
        let statement = statement.bind(hash.as_bytes().as_slice()).bind(surface.as_str());
        self.fetch_optional(statement, ApiToken::from_row).await
    }

    /// The active token of a kind with this id; it may be revoked or expired.
    pub async fn find_token_by_id(&self, kind: TokenKind, id: Uuid) -> Result<Option<ApiToken>, StoreError> {
        self.fetch_optional(
            sqlx::query(concat!(
                "/* find_token_by_id */ ",
                token!(""),
                "k.id = $1 AND k.kind = $2 AND k.active"
            ))
            .bind(id)
            .bind(kind.as_str()),
            ApiToken::from_row,
        )
        .await
    }

    /// Records a use of a token, unless the last recorded one is less than `step` ago.
    pub async fn touch_token(
        &self,
        id: Uuid,
        now: Timestamp,
        step: SignedDuration,
    ) -> Result<(), StoreError> {
        self.execute(
            sqlx::query(
                "/* touch_token */
            UPDATE api_token SET last_used_at = $2
            WHERE id = $1 AND (last_used_at IS NULL OR last_used_at <= $3)",
            )
            .bind(id)
            .bind(now.to_sqlx())
            .bind((now - step).to_sqlx()),
        )
        .await
    }

    /// Stores a token and returns its id; does not check the limit of the tenant.
    ///
    /// # Errors
    /// [`StoreError`]; also where the tenant does not exist.
    pub async fn insert_token(&self, new: NewToken<'_>, now: Timestamp) -> Result<Uuid, StoreError> {
        let id = new_id(now);
        let statement = sqlx::query(
            "/* insert_token */
            INSERT INTO api_token (id, tenant, kind, name, hint, hash, surfaces, created_by, created_at, expires_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        )
        .bind(id)
        .bind(new.tenant)
        .bind(new.kind.as_str())
        .bind(new.name)
        .bind(new.token.hint())
        .bind(new.hash().as_bytes().as_slice())
        .bind(new.surface_names())
        .bind(new.created_by)
        .bind(now.to_sqlx())
        .bind(new.expires_at.map(|at| at.to_sqlx()));
        self.execute(statement).await?;
        Ok(id)
    }

    /// Creates a token under `id`, unless its tenant has reached its limit. Revoked and expired tokens do not count.
    pub async fn create_token(
        &self,
        id: Uuid,
        new: NewToken<'_>,
        now: Timestamp,
    ) -> Result<CreateOutcome, StoreError> {
        let statement =
            sqlx::query("/* create_token */ SELECT create_token($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)")
                .bind(id)
                .bind(new.tenant)
                .bind(new.kind.as_str())
                .bind(new.name)
                .bind(new.token.hint())
                .bind(new.hash().as_bytes().as_slice())
                .bind(new.surface_names())
                .bind(new.created_by)
                .bind(now.to_sqlx())
                .bind(new.expires_at.map(|at| at.to_sqlx()));
        self.fetch_one(statement, |row| CreateOutcome::from_row("create_token", row)).await
    }

    /// A page (from 1, 1,000 tokens) of a tenant's active tokens, newest first: of one kind, or of both. Revoked and
    /// expired tokens are listed for [`ENDED_TOKEN_RETENTION`].
    pub async fn list_tokens(
        &self,
        tenant: Uuid,
        kind: Option<TokenKind>,
        page: i64,
        now: Timestamp,
    ) -> Result<Vec<ListedToken>, StoreError> {
        self.fetch_all(
            sqlx::query(
                "/* list_tokens */
            SELECT id, name, kind, hint, created_at, last_used_at, expires_at, revoked_at, surfaces FROM api_token
            WHERE tenant = $1 AND active AND ($2::text IS NULL OR kind = $2)
              AND (coalesce(revoked_at, expires_at) > $3) IS NOT FALSE
            ORDER BY created_at DESC, id DESC OFFSET $4 LIMIT $5",
            )
            .bind(tenant)
            .bind(kind.map(TokenKind::as_str))
            .bind((now - ENDED_TOKEN_RETENTION).to_sqlx())
            .bind(rows_before(page, OWNED_PAGE_SIZE))
            .bind(OWNED_PAGE_SIZE),
            ListedToken::from_row,
        )
        .await
    }

    /// Revokes a token of a tenant, of one kind or of any; a revoked one is not found.
    pub async fn revoke_token(
        &self,
        tenant: Uuid,
        id: Uuid,
        kind: Option<TokenKind>,
        now: Timestamp,
    ) -> Result<Result<(), ChangeError>, StoreError> {
        let managed_by: Option<String> = self
            .fetch_optional(
                sqlx::query(
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
                .bind((now - ENDED_TOKEN_RETENTION).to_sqlx()),
                first_column,
            )
            .await?;
        ChangeError::unless_changed(managed_by.as_deref(), "api_token", id)
    }

    /// Deletes tokens that were revoked or expired at least [`ENDED_TOKEN_RETENTION`] ago. Returns how many.
    pub async fn delete_ended_tokens(&self, now: Timestamp) -> Result<u64, StoreError> {
        self.affected_rows(sqlx::query(
            "/* delete_ended_tokens */
            DELETE FROM api_token
            WHERE (revoked_at IS NOT NULL OR expires_at IS NOT NULL) AND coalesce(revoked_at, expires_at) <= $1",
        )
        .bind((now - ENDED_TOKEN_RETENTION).to_sqlx())).await
    }
}
