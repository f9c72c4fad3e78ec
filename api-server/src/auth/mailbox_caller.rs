//! The caller with a mailbox JWT.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use jiff::Timestamp;
use tempmail_store::Mailbox;

use super::authenticator::{Authenticator, client_of};
use super::bearer::bearer;
use crate::http::error::ApiError;
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
