//! What tokens make: minted tokens, which are for one address, and Pro sessions. A session is a JWT that names its
//! token; the store only knows which of them were ended.

use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::ToSqlx as _;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tempmail_model::id::lowest_id;
use tempmail_model::token::{PlainToken, TokenHash, TokenKind};
use uuid::Uuid;

use super::token::{ApiToken, token, token_columns};
use crate::error::StoreError;
use crate::mail::inbox::{InboxQuery, access, with_access};
use crate::pool::Store;
use crate::row::optional_time;

/// A live token, or a minted one; the caller decides whether it is valid.
#[derive(Debug, Clone, Copy)]
pub struct LiveToken {
    /// The token, or the parent of the minted one.
    pub token: ApiToken,
    /// The minted one.
    pub minted: Option<MintedToken>,
}

/// What is a minted token's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MintedToken {
    /// UUIDv7: it tells when the row was created.
    pub id: Uuid,
    /// The key of the exact address that it is for
    /// ([`RecipientAddress::inbox_key`](tempmail_model::address::RecipientAddress::inbox_key)).
    pub address: Uuid,
    /// When it expires.
    pub expires_at: Timestamp,
}

/// A token to mint.
#[derive(Debug, Clone, Copy)]
pub struct NewMintedToken<'a> {
    /// A new UUIDv7, which the caller makes.
    pub id: Uuid,
    /// The live token that mints it.
    pub parent: Uuid,
    /// The token; only its hash is stored.
    pub token: &'a PlainToken,
    /// When it expires.
    pub expires_at: Timestamp,
    /// How many unexpired ones a tenant may have.
    pub limit: u32,
}

/// What came of minting a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MintOutcome {
    /// It was minted when the stream stood at this position.
    Minted(i64),
    /// The tenant may not read the address.
    Unreadable,
    /// The tenant has as many as it may.
    LimitReached,
    /// The tenant is suspended or removed.
    TenantDisabled,
}

const FIND_LIVE_TOKEN: &str = concat!(
    "/* find_live_token */ ",
    token!(", NULL::uuid AS minted, NULL::uuid AS address_key, NULL::timestamptz AS minted_expires_at"),
    "k.hash = $1 AND k.kind = 'live'
    UNION ALL
    SELECT ",
    token_columns!(),
    ", m.id, m.address_key, m.expires_at
    FROM minted_token m JOIN api_token k ON k.id = m.parent JOIN tenant t ON t.id = k.tenant WHERE m.hash = $1"
);

const FIND_MINTED_TOKEN: &str = concat!(
    "/* find_minted_token */ SELECT ",
    token_columns!(),
    ", m.id AS minted, m.address_key, m.expires_at AS minted_expires_at
    FROM minted_token m JOIN api_token k ON k.id = m.parent JOIN tenant t ON t.id = k.tenant WHERE m.id = $1"
);

// The position is that of the statement's snapshot: what is stored later comes after it.
const MINT_TOKEN: &str = concat!(
    "/* mint_token */ WITH ",
    access!(),
    " SELECT mint_token($8, $9, $4, $10, $5, $11, $12, $7) AS outcome, s.seq AS position
    FROM access CROSS JOIN stream s WHERE s.singleton"
);

impl LiveToken {
    /// When it expires, or its parent, whichever is first.
    pub fn expires_at(&self) -> Option<Timestamp> {
        [self.token.expires_at, self.minted.map(|minted| minted.expires_at)].into_iter().flatten().min()
    }

    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        let minted = match (row.try_get("minted")?, optional_time(row, "minted_expires_at")?) {
            (Some(id), Some(expires_at)) => {
                Some(MintedToken { id, address: row.try_get("address_key")?, expires_at })
            }
            _ => None,
        };
        Ok(Self { token: ApiToken::from_row(row)?, minted })
    }
}

impl MintOutcome {
    fn from_row(row: &PgRow) -> Result<Self, StoreError> {
        match row.try_get("outcome")? {
            "minted" => Ok(Self::Minted(row.try_get("position")?)),
            "limit_reached" => Ok(Self::LimitReached),
            "tenant_disabled" => Ok(Self::TenantDisabled),
            word => Err(StoreError::unknown_word("mint_token", word)),
        }
    }
}

impl Store {
    /// The live token with this hash, of a tenant or minted; it may be inactive, revoked or expired. `None`: there is
    /// none.
    pub async fn find_live_token(&self, hash: TokenHash) -> Result<Option<LiveToken>, StoreError> {
        let statement = sqlx::query(FIND_LIVE_TOKEN).bind(hash.as_bytes().as_slice());
        self.fetch_optional(statement, LiveToken::from_row).await
    }

    /// The minted token with this id; it or its parent may have expired, and its parent may be revoked.
    pub async fn find_minted_token(&self, id: Uuid) -> Result<Option<LiveToken>, StoreError> {
        self.fetch_optional(sqlx::query(FIND_MINTED_TOKEN).bind(id), LiveToken::from_row).await
    }

    /// Mints a token for an address, if the tenant may read the address now. Its parent, the tenant and the limit are
    /// judged in the same statement.
    ///
    /// # Errors
    /// [`StoreError`]; [`StoreError::TokenEnded`] where its parent is not accepted any more.
    pub async fn mint_token(
        &self,
        query: InboxQuery<'_>,
        new: NewMintedToken<'_>,
        now: Timestamp,
    ) -> Result<MintOutcome, StoreError> {
        let statement = with_access(MINT_TOKEN, &query, now)
            .bind(new.id)
            .bind(new.parent)
            .bind(new.token.hash().as_bytes().as_slice())
            .bind(new.expires_at.to_sqlx())
            .bind(i64::from(new.limit));
        Ok(self.fetch_optional(statement, MintOutcome::from_row).await?.unwrap_or(MintOutcome::Unreadable))
    }

    /// Revokes a minted token of a tenant; `false` where there is none.
    pub async fn revoke_minted_token(&self, tenant: Uuid, id: Uuid) -> Result<bool, StoreError> {
        let statement = sqlx::query("/* revoke_minted_token */ SELECT revoke_minted_token($1, $2)");
        self.fetch_value(statement.bind(tenant).bind(id)).await
    }

    /// Deletes minted tokens that have expired. Returns how many.
    pub async fn delete_expired_minted_tokens(&self, now: Timestamp) -> Result<u64, StoreError> {
        let statement =
            sqlx::query("/* delete_expired_minted_tokens */ DELETE FROM minted_token WHERE expires_at <= $1");
        self.affected_rows(statement.bind(now.to_sqlx())).await
    }
}

/// How long it is kept that a session was ended: longer than any session is valid.
const ENDED_SESSION_RETENTION: SignedDuration = SignedDuration::from_hours(24);

/// A token, and the state of a session of it.
#[derive(Debug, Clone)]
pub struct SessionToken {
    /// The token, which may be revoked or expired.
    pub token: ApiToken,
    /// Whether the session was ended.
    pub ended: bool,
}

impl Store {
    /// The active Pro token of this id, and whether a session of it was ended.
    pub async fn find_session_token(
        &self,
        token: Uuid,
        session: Uuid,
    ) -> Result<Option<SessionToken>, StoreError> {
        let statement = sqlx::query(concat!(
            "/* find_session_token */ ",
            token!(", EXISTS (SELECT FROM ended_session e WHERE e.id = $3) AS ended"),
            "k.id = $1 AND k.kind = $2 AND k.active"
        ));
        self.fetch_optional(statement.bind(token).bind(TokenKind::Pro.as_str()).bind(session), |row| {
            Ok(SessionToken { token: ApiToken::from_row(row)?, ended: row.try_get("ended")? })
        })
        .await
    }

    /// Ends a session of a token, in all processes; `false` where it has ended already.
    pub async fn end_session(&self, session: Uuid, token: Uuid, tenant: Uuid) -> Result<bool, StoreError> {
        let statement = sqlx::query("/* end_session */ SELECT end_session($1, $2, $3)");
        self.fetch_value(statement.bind(session).bind(token).bind(tenant)).await
    }

    /// Forgets sessions that were ended and have expired since. Returns how many.
    pub async fn delete_ended_sessions(&self, now: Timestamp) -> Result<u64, StoreError> {
        let statement = sqlx::query("/* delete_ended_sessions */ DELETE FROM ended_session WHERE id < $1");
        self.affected_rows(statement.bind(lowest_id(now - ENDED_SESSION_RETENTION))).await
    }
}
