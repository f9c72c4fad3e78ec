//! The caller with a live API token.

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use jiff::Timestamp;
use tempmail_model::token::{TokenHash, TokenKind};
use tempmail_store::ApiToken;
use uuid::Uuid;

use super::{Refusal, check};
use crate::error::V1Error;
use crate::limit::RateReport;
use crate::state::AppState;

/// The header that carries a live token.
const HEADER: &str = "x-api-token";

/// A tenant that a `tm_live_` token was presented for. Its requests a second are counted:
/// whoever extracts it needs no further limit.
#[derive(Debug, Clone, Copy)]
pub struct LiveCaller {
    /// The token: waits are counted by it.
    pub token: Uuid,
    /// Its tenant, which is not suspended.
    pub tenant: Uuid,
    /// When the token expires.
    pub expires_at: Option<Timestamp>,
}

impl LiveCaller {
    /// Whether the token may still act.
    ///
    /// # Errors
    /// 401, 403 or 440 as for a request that came now; or Postgres is away.
    pub(crate) async fn recheck(&self, state: &AppState) -> Result<(), V1Error> {
        let token = state.store.find_token_by_id(TokenKind::Live, self.token).await?;
        admit(&token.ok_or(V1Error::InvalidToken)?, state.clock.now())
    }
}

impl FromRequestParts<AppState> for LiveCaller {
    type Rejection = V1Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, V1Error> {
        let presented = presented(&parts.headers)?;
        let hash = TokenHash::of_presented(TokenKind::Live, presented).ok_or(V1Error::InvalidToken)?;
        let token = find(hash, state).await?;
        let decision = state.limits.of_token(token.id).await;
        RateReport::put(&parts.extensions, "token", decision);
        if !decision.allowed {
            return Err(V1Error::RateLimitExceeded { retry_after: decision.retry_after });
        }
        state.touches.token(&token, state.clock.now());
        Ok(Self { token: token.id, tenant: token.tenant, expires_at: token.expires_at })
    }
}

/// The one header, which is to be there.
fn presented(headers: &HeaderMap) -> Result<&str, V1Error> {
    let mut values = headers.get_all(HEADER).iter();
    let value = values.next().ok_or(V1Error::AuthenticationRequired)?;
    if values.next().is_some() {
        return Err(V1Error::InvalidToken);
    }
    match value.to_str() {
        Ok("") => Err(V1Error::AuthenticationRequired),
        Ok(text) => Ok(text),
        Err(_not_ascii) => Err(V1Error::InvalidToken),
    }
}

async fn find(hash: TokenHash, state: &AppState) -> Result<ApiToken, V1Error> {
    let token = state.store.find_token(TokenKind::Live, hash).await?.ok_or(V1Error::InvalidToken)?;
    admit(&token, state.clock.now())?;
    Ok(token)
}

fn admit(token: &ApiToken, now: Timestamp) -> Result<(), V1Error> {
    check(token, now).map_err(|refusal| match refusal {
        Refusal::Revoked => V1Error::InvalidToken,
        Refusal::Expired => V1Error::SessionExpired,
        Refusal::Suspended => V1Error::AccountDisabled,
    })
}
