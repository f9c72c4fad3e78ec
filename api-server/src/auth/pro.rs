//! The caller with a Pro API token, or with a session that stands for one.

use axum::extract::{FromRequestParts, OptionalFromRequestParts};
use axum::http::request::Parts;
use tempmail_model::token::{TokenHash, TokenKind};
use tempmail_store::ApiToken;
use uuid::Uuid;

use super::bearer::bearer;
use super::pro_session::ProSession;
use super::{Refusal, check};
use crate::error::ApiError;
use crate::limit::RateReport;
use crate::state::AppState;

/// A tenant that a `tm_pro_` token was presented for, where a session is not accepted.
#[derive(Debug, Clone, Copy)]
pub struct ProToken {
    /// Its tenant, which is not suspended.
    pub tenant: Uuid,
}

/// A tenant that a `tm_pro_` token or a Pro session was presented for. Its requests a second
/// are counted: whoever extracts it needs no further limit.
#[derive(Debug, Clone, Copy)]
pub struct ProCaller {
    /// The token, or the one that the session stands for.
    pub token: Uuid,
    /// Its tenant, which is not suspended.
    pub tenant: Uuid,
}

/// The Pro token that was presented, if it may act.
///
/// # Errors
/// 401, 403 or 440.
pub async fn find_pro_token(presented: &str, state: &AppState) -> Result<ApiToken, ApiError> {
    let hash = TokenHash::from_presented(TokenKind::Pro, presented).ok_or(ApiError::InvalidToken)?;
    let token = state.store.find_token(TokenKind::Pro, hash).await?.ok_or(ApiError::InvalidToken)?;
    admit(token, state)
}

/// A token that was found, if it may act.
fn admit(token: ApiToken, state: &AppState) -> Result<ApiToken, ApiError> {
    let now = state.clock.now();
    check(&token, now).map_err(|refusal| match refusal {
        Refusal::Revoked => ApiError::InvalidToken,
        Refusal::Expired => ApiError::SessionExpired,
        Refusal::Suspended => ApiError::AccountDisabled,
    })?;
    state.touches.token(&token, now);
    Ok(token)
}

impl OptionalFromRequestParts<AppState> for ProToken {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Option<Self>, ApiError> {
        let Some(presented) = bearer(&parts.headers)? else { return Ok(None) };
        Ok(Some(Self { tenant: find_pro_token(presented, state).await?.tenant }))
    }
}

impl FromRequestParts<AppState> for ProCaller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let presented = bearer(&parts.headers)?.ok_or(ApiError::AuthenticationRequired)?;
        let token = if presented.starts_with(TokenKind::Pro.prefix()) {
            find_pro_token(presented, state).await?
        } else {
            match state.pro_sessions.read(presented, state.clock.now()).ok_or(ApiError::InvalidToken)? {
                ProSession::Expired => return Err(ApiError::SessionExpired),
                ProSession::Of(id) => {
                    let token = state.store.find_token_by_id(TokenKind::Pro, id).await?;
                    admit(token.ok_or(ApiError::InvalidToken)?, state)?
                }
            }
        };
        let decision = state.limits.of_pro_token(token.id).await;
        RateReport::put(&parts.extensions, "token", decision);
        if !decision.allowed {
            return Err(ApiError::RateLimitExceeded { retry_after: decision.retry_after });
        }
        Ok(Self { token: token.id, tenant: token.tenant })
    }
}
