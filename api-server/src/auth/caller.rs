//! Callers with a mailbox JWT, with a Pro token or with a session of one, and what all callers of a tenant have in
//! common.

use axum::extract::{FromRequestParts, OptionalFromRequestParts};
use axum::http::request::Parts;
use axum::response::IntoResponse;
use jiff::Timestamp;
use tempmail_model::token::TokenKind;
use tempmail_runtime::config::Http;
use tempmail_store::{Actor, Mailbox};
use uuid::Uuid;

use super::authenticator::{Authenticator, client_of};
use super::bearer::bearer;
use super::browser_session;
use super::jwt::{ProSession, VerifiedProSession};
use super::live_caller::LiveCaller;
use crate::http::error::{ApiError, V1Error};
use crate::http::rate_limit::RateLimitHeaders;

/// The mailbox whose JWT was presented, as it is in the store now. Extracting it counts the request against the
/// mailbox' rate: no further limit is needed.
#[derive(Debug, Clone)]
pub(crate) struct MailboxCaller {
    /// An active mailbox; its tenant is not suspended.
    pub(crate) mailbox: Mailbox,
    /// When the JWT expires.
    pub(crate) expires_at: Timestamp,
}

impl<S: AsRef<Authenticator> + Send + Sync> FromRequestParts<S> for MailboxCaller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let auth = state.as_ref();
        let jwt = bearer(&parts.headers)?.ok_or(ApiError::AuthenticationRequired)?;
        let now = auth.clock.now();
        let token = auth.mailbox_tokens.verify(jwt, now).ok_or(ApiError::InvalidToken)?;
        let mailbox = auth.find_mailbox(client_of(parts)?, token).await?;
        let decision = auth.limits.count_mailbox(mailbox.id).await;
        RateLimitHeaders::enforce_in(&parts.extensions, "mailbox", decision)?;
        auth.last_used.record_mailbox(&mailbox, now);
        Ok(Self { mailbox, expires_at: token.expires_at })
    }
}

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
            None => (browser_session::presented(state.as_ref(), parts)?, true),
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

/// A caller whose API token belongs to a tenant.
pub(crate) trait TenantCaller: Send + Sync + 'static {
    /// The form of errors on the caller's surface.
    type Error: From<ApiError> + IntoResponse + Send;

    /// The tenant, which is not suspended.
    fn tenant(&self) -> Uuid;

    /// The token that was presented, or that the session belongs to.
    fn token(&self) -> Uuid;

    /// The caller in the audit trail.
    fn actor(&self) -> Actor;

    /// When the tokens expire that the caller makes, at the latest. What a live token makes does not outlive it; what a
    /// Pro token makes is its tenant's.
    fn made_tokens_end_at(&self) -> Option<Timestamp>;
}

impl TenantCaller for ProCaller {
    type Error = ApiError;

    fn tenant(&self) -> Uuid {
        self.tenant
    }

    fn token(&self) -> Uuid {
        self.token
    }

    fn actor(&self) -> Actor {
        if self.session.is_some() { Actor::Session(self.token) } else { Actor::Token(self.token) }
    }

    fn made_tokens_end_at(&self) -> Option<Timestamp> {
        None
    }
}

impl TenantCaller for LiveCaller {
    type Error = V1Error;

    fn tenant(&self) -> Uuid {
        self.tenant
    }

    fn token(&self) -> Uuid {
        self.token
    }

    fn actor(&self) -> Actor {
        Actor::Token(self.token)
    }

    fn made_tokens_end_at(&self) -> Option<Timestamp> {
        self.expires_at
    }
}
