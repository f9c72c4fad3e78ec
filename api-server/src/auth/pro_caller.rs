//! The caller with a Pro API token, or with a session of one.

use axum::extract::{FromRequestParts, OptionalFromRequestParts};
use axum::http::request::Parts;
use tempmail_model::token::TokenKind;
use uuid::Uuid;

use super::authenticator::{Authenticator, client_of};
use super::bearer::bearer;
use super::pro_session::VerifiedProSession;
use crate::http::error::ApiError;
use crate::http::rate_limit::RateLimitHeaders;

/// The tenant of a `tm_pro_` token, where a session is not accepted. Extracting it counts the request as
/// [`ProCaller`] does.
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
        let auth = state.as_ref();
        let token = auth.find_pro_token(client_of(parts)?, presented).await?;
        let decision = auth.limits.count_pro_token(token.id).await;
        RateLimitHeaders::enforce_in(&parts.extensions, "token", decision)?;
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
                VerifiedProSession::Active { token, issued_at } => {
                    let token = auth.find_token_of_session(client_of(parts)?, token).await?;
                    if token.sessions_from.is_some_and(|from| issued_at < from) {
                        return Err(ApiError::SessionExpired);
                    }
                    auth.last_used.record_token(&token, now);
                    token
                }
            }
        } else {
            auth.find_pro_token(client_of(parts)?, presented).await?
        };
        let decision = auth.limits.count_pro_token(token.id).await;
        RateLimitHeaders::enforce_in(&parts.extensions, "token", decision)?;
        Ok(Self { token: token.id, tenant: token.tenant, has_session })
    }
}
