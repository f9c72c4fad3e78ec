//! API tokens as answers show them.

use serde::Serialize;
use tempmail_model::timestamp::timestamp;
use tempmail_store::ListedToken;
use utoipa::ToSchema;
use uuid::Uuid;

/// An API token, without its secret.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TokenRecord {
    pub(crate) id: Uuid,
    pub(crate) name: String,
    /// `pro` or `live`.
    pub(crate) kind: String,
    /// The last four characters of the token.
    pub(crate) hint: String,
    pub(crate) created_at: String,
    pub(crate) last_used_at: Option<String>,
    pub(crate) expires_at: Option<String>,
    pub(crate) revoked_at: Option<String>,
    /// The drop-in surfaces that it is for, and for nothing else; empty for other tokens.
    pub(crate) surfaces: Vec<String>,
}

/// A page of tokens, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TokenList {
    tokens: Vec<TokenRecord>,
}

/// A new token.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CreatedToken {
    #[serde(flatten)]
    pub(crate) record: TokenRecord,
    /// The token. This is the only time that it is shown.
    pub(crate) token: String,
}

impl From<ListedToken> for TokenRecord {
    fn from(token: ListedToken) -> Self {
        Self {
            id: token.id,
            name: token.name,
            kind: token.kind,
            hint: token.hint,
            created_at: timestamp(token.created_at),
            last_used_at: token.last_used_at.map(timestamp),
            expires_at: token.expires_at.map(timestamp),
            revoked_at: token.revoked_at.map(timestamp),
            surfaces: token.surfaces,
        }
    }
}

impl TokenList {
    pub(super) fn new(tokens: Vec<ListedToken>) -> Self {
        Self { tokens: tokens.into_iter().map(Into::into).collect() }
    }
}
