//! `POST /api/token`.

use axum::Json;
use axum::extract::State;
use serde_json::json;
use tempmail_model::address::MailboxAddress;

use super::signed_in::SignedIn;
use crate::auth::HashParty;
use crate::http::error::{ApiError, code};
use crate::http::json_body::JsonObject;
use crate::http::public_caller::PublicCaller;
use crate::openapi::{Credential, Operation, Routes};
use crate::state::AppState;

/// The route of `/api/token`.
pub(super) fn routes() -> Routes<AppState> {
    Routes::new().post(
        "/api/token",
        Operation::new("signIn", Credential::None, "Sign in to a mailbox")
            .body(json!({
                "type": "object",
                "required": ["address", "password"],
                "properties": {
                    "address": {"type": "string", "examples": ["hello@inbox.localhost"]},
                    "password": {"type": "string", "examples": ["correct horse"]},
                },
            }))
            .json::<SignedIn>(200, "A new JWT, for 7 days.")
            .fails(&[code::INVALID_CREDENTIALS, code::ACCOUNT_DISABLED]),
        create_token,
    )
}

/// Signs in to a mailbox. An address without a mailbox fails like a wrong password, after the same time. The attempt is
/// given back wherever the password is not compared: a store that is away makes nobody's password wrong.
async fn create_token(
    State(state): State<AppState>,
    PublicCaller { client }: PublicCaller,
    mut body: JsonObject,
) -> Result<Json<SignedIn>, ApiError> {
    let address = body.text("address")?;
    let password = body.text("password")?;
    let address = MailboxAddress::parse(&address).ok();
    let counted_as = address.as_ref().map_or("", MailboxAddress::as_str);
    let attempt = state.limits.begin_sign_in(counted_as, client).await?;
    let found = match &address {
        Some(address) => state.store.find_mailbox_to_sign_in(address.local_part(), address.domain()).await?,
        None => None,
    };
    let (mailbox, hash) = found.unzip();
    let matches = state.passwords.verify(HashParty::of_client(client), password, hash, attempt).await?;
    let Some(mailbox) = mailbox.filter(|_| matches) else { return Err(ApiError::InvalidCredentials) };
    if mailbox.suspended {
        return Err(ApiError::AccountDisabled);
    }
    let now = state.clock.now();
    state.auth.last_used.record_mailbox(&mailbox, now);
    let token = state.auth.mailbox_tokens.issue(mailbox.id, mailbox.password_epoch, now);
    Ok(Json(SignedIn { id: mailbox.id, address: mailbox.address, token }))
}
