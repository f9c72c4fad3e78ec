//! The caller with a mailbox JWT.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use tempmail_store::Mailbox;

use super::authenticator::Authenticator;
use super::bearer::bearer;
use crate::http::error::ApiError;

/// The mailbox whose JWT was presented, as it is in the store now.
#[derive(Debug, Clone)]
pub(crate) struct MailboxCaller {
    /// An active mailbox; its tenant is not suspended.
    pub(crate) mailbox: Mailbox,
}

impl<S: AsRef<Authenticator> + Send + Sync> FromRequestParts<S> for MailboxCaller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let auth = state.as_ref();
        let jwt = bearer(&parts.headers)?.ok_or(ApiError::AuthenticationRequired)?;
        let now = auth.clock.now();
        let token = auth.mailbox_tokens.verify(jwt, now).ok_or(ApiError::InvalidToken)?;
        let mailbox = auth
            .store
            .find_mailbox(token.mailbox)
            .await?
            .filter(|mailbox| mailbox.password_epoch == token.epoch)
            .ok_or(ApiError::InvalidToken)?;
        if mailbox.suspended {
            return Err(ApiError::AccountDisabled);
        }
        auth.last_used.record_mailbox(&mailbox, now);
        Ok(Self { mailbox })
    }
}
