//! The caller with a mailbox JWT.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use tempmail_store::Mailbox;

use super::bearer::bearer;
use crate::error::ApiError;
use crate::state::AppState;

/// A mailbox that its own JWT was presented for, as the store has it now.
#[derive(Debug, Clone)]
pub struct MailboxCaller {
    /// The mailbox; it serves, and its tenant is not suspended.
    pub mailbox: Mailbox,
}

impl FromRequestParts<AppState> for MailboxCaller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let jwt = bearer(&parts.headers)?.ok_or(ApiError::AuthenticationRequired)?;
        let now = state.clock.now();
        let claim = state.mailbox_tokens.read(jwt, now).ok_or(ApiError::InvalidToken)?;
        let mailbox = state
            .store
            .find_mailbox(claim.mailbox)
            .await?
            .filter(|mailbox| mailbox.password_epoch == claim.epoch)
            .ok_or(ApiError::InvalidToken)?;
        if mailbox.suspended {
            return Err(ApiError::AccountDisabled);
        }
        state.touches.mailbox(&mailbox, now);
        Ok(Self { mailbox })
    }
}
