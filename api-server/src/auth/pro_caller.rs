//! The caller with a Pro API token, or with a session of one.

use axum::extract::{FromRequestParts, OptionalFromRequestParts};
use axum::http::request::Parts;
use jiff::Timestamp;
use tempmail_model::token::TokenKind;
use tempmail_runtime::config::Http;
use uuid::Uuid;

use super::authenticator::{Authenticator, client_of};
use super::bearer::bearer;
use super::pro_session::{ProSession, VerifiedProSession};
use super::session_cookie;
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

/// The tenant of a `tm_pro_` token or of a Pro session, which may be in the cookie of a browser. Extracting it counts
/// the request against the token's rate: no further limit is needed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProCaller {
    /// The token, or the one that the session belongs to.
    pub(crate) token: Uuid,
    /// The tenant, which is not suspended.
    pub(crate) tenant: Uuid,
    /// The session, if not the token was presented.
    pub(crate) session: Option<ProSession>,
    /// When the token or the session expires.
    pub(crate) expires_at: Option<Timestamp>,
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

impl<S: AsRef<Authenticator> + AsRef<Http> + Send + Sync> FromRequestParts<S> for ProCaller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let auth: &Authenticator = state.as_ref();
        let client = client_of(parts)?;
        let (presented, is_cookie) = match bearer(&parts.headers)? {
            Some(presented) => (presented, false),
            None => (session_cookie::presented(state.as_ref(), parts)?, true),
        };
        let session = if is_cookie || !presented.starts_with(TokenKind::Pro.prefix()) {
            match auth.pro_sessions.verify(presented, auth.clock.now()).ok_or(ApiError::InvalidToken)? {
                VerifiedProSession::Expired => return Err(ApiError::SessionExpired),
                VerifiedProSession::Active(session) => Some(session),
            }
        } else {
            None
        };
        let token = match &session {
            Some(session) => {
                let token = auth.find_token_of_session(client, session).await?;
                auth.last_used.record_token(&token, auth.clock.now());
                token
            }
            None => auth.find_pro_token(client, presented).await?,
        };
        let decision = auth.limits.count_pro_token(token.id).await;
        RateLimitHeaders::enforce_in(&parts.extensions, "token", decision)?;
        let ends = [token.expires_at, session.map(|session| session.expires_at)];
        Ok(Self {
            token: token.id,
            tenant: token.tenant,
            session,
            expires_at: ends.into_iter().flatten().min(),
        })
    }
}
