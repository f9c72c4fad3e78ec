//! Signing in to a mailbox by its password.

use tempmail_model::address::MailboxAddress;
use tempmail_store::Mailbox;

use crate::http::client::Client;
use crate::http::error::ApiError;
use crate::http::json_body::JsonObject;
use crate::state::AppState;

/// Signs in to the mailbox that `body` names, and returns it with a new JWT. An address without a mailbox fails like a
/// wrong password, after the same time. The attempt is given back wherever the password is not compared: a store that is
/// away makes nobody's password wrong.
///
/// # Errors
/// [`ApiError::InvalidCredentials`], [`ApiError::AccountDisabled`]; the body is malformed; there were too many attempts;
/// the store failed.
pub(crate) async fn sign_in(
    state: &AppState,
    client: Client,
    mut body: JsonObject,
) -> Result<(Mailbox, String), ApiError> {
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
    let matches = state.passwords.verify(client.turn_key(None), password, hash, attempt).await?;
    let Some(mailbox) = mailbox.filter(|_| matches) else { return Err(ApiError::InvalidCredentials) };
    if mailbox.suspended {
        return Err(ApiError::AccountDisabled);
    }
    let now = state.clock.now();
    state.auth.last_used.record_mailbox(&mailbox, now);
    let token = state.auth.mailbox_tokens.issue(mailbox.id, mailbox.password_epoch, now);
    Ok((mailbox, token))
}
