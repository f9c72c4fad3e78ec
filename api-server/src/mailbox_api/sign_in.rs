//! `POST /api/token`.

use axum::extract::State;
use axum::{Extension, Json};
use tempmail_model::address::MailboxAddress;

use super::account::SignedIn;
use crate::client::Client;
use crate::error::ApiError;
use crate::json_body::JsonObject;
use crate::state::AppState;

/// Signs in to a mailbox. An address that nobody has fails as a wrong password does, and takes
/// as long.
pub(super) async fn create_token(
    State(state): State<AppState>,
    Extension(client): Extension<Client>,
    mut body: JsonObject,
) -> Result<Json<SignedIn>, ApiError> {
    let address = body.text("address")?;
    let password = body.text("password")?;
    let address = MailboxAddress::parse(&address).ok();
    let counted_as = address.as_ref().map_or("", MailboxAddress::as_str);
    let attempt = state
        .limits
        .begin_sign_in(counted_as, client)
        .await
        .map_err(|retry_after| ApiError::RateLimitExceeded { retry_after })?;
    let found = match &address {
        Some(address) => state.store.find_mailbox_to_sign_in(address.local_part(), address.domain()).await?,
        None => None,
    };
    let (mailbox, hash) = found.unzip();
    let matches = state.passwords.verify(password, hash).await?;
    let Some(mailbox) = mailbox.filter(|_| matches) else { return Err(ApiError::InvalidCredentials) };
    attempt.record_success().await;
    if mailbox.suspended {
        return Err(ApiError::AccountDisabled);
    }
    let now = state.clock.now();
    state.touches.mailbox(&mailbox, now);
    let token = state.mailbox_tokens.make(mailbox.id, mailbox.password_epoch, now);
    Ok(Json(SignedIn { id: mailbox.id, address: mailbox.address, token }))
}
