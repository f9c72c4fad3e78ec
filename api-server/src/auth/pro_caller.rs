//! The caller with a Pro API token, or with a session of one.

use axum::extract::{FromRequestParts, OptionalFromRequestParts};
use axum::http::request::Parts;
use tempmail_model::token::TokenKind;
use uuid::Uuid;

use super::authenticator::Authenticator;
use super::bearer::bearer;
use super::pro_session::VerifiedProSession;
use crate::http::error::ApiError;
use crate::http::rate_limit::{RateLimitHeaders, enforce};

/// The tenant of a `tm_pro_` token, where a session is not accepted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProToken {
    /// The token.
    pub(crate) token: Uuid,
    /// The tenant, which is not suspended.
    pub(crate) tenant: Uuid,
}

/// The tenant of a `tm_pro_` token or of a Pro session. Extracting it counts the request against the
/// token's rate: no further limit is needed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProCaller {
    /// The token, or the one that the session belongs to.
    pub(crate) token: Uuid,
    /// The tenant, which is not suspended.
    pub(crate) tenant: Uuid,
    /// Whether a session was presented, and not the token.
    pub(crate) has_session: bool,
}

impl<S: AsRef<Authenticator> + Send + Sync> OptionalFromRequestParts<S> for ProToken {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Option<Self>, ApiError> {
        let Some(presented) = bearer(&parts.headers)? else { return Ok(None) };
        let token = state.as_ref().find_pro_token(presented).await?;
        Ok(Some(Self { token: token.id, tenant: token.tenant }))
    }
}

impl<S: AsRef<Authenticator> + Send + Sync> FromRequestParts<S> for ProCaller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let auth = state.as_ref();
        let presented = bearer(&parts.headers)?.ok_or(ApiError::AuthenticationRequired)?;
        let has_session = !presented.starts_with(TokenKind::Pro.prefix());
        let token = if has_session {
            let now = auth.clock.now();
            match auth.pro_sessions.verify(presented, now).ok_or(ApiError::InvalidToken)? {
                VerifiedProSession::Expired => return Err(ApiError::SessionExpired),
                VerifiedProSession::Active { token } => {
                    let token = auth.find_token_by_id(TokenKind::Pro, token).await?;
                    auth.last_used.record_token(&token, now);
                    token
                }
            }
        } else {
            auth.find_pro_token(presented).await?
        };
        let decision = auth.limits.count_pro_token(token.id).await;
        RateLimitHeaders::record_in(&parts.extensions, "token", decision);
        enforce(decision)?;
        Ok(Self { token: token.id, tenant: token.tenant, has_session })
    }
}
