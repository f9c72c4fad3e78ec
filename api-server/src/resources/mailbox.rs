//! Mailboxes, as `/api` and `/pro/api` list and change them.

pub(crate) mod creation;

use jiff::Timestamp;
use serde_json::{Value, json};
use tempmail_runtime::config::Limits;
use tempmail_store::Actor;
use uuid::Uuid;

use crate::http::error::ApiError;
use crate::state::AppState;

/// The schema of a new password, with the default lengths.
pub(crate) fn password_schema() -> Value {
    let limits = Limits::default();
    json!({"type": "string", "minLength": limits.password_min, "maxLength": limits.password_max,
           "examples": ["correct horse"]})
}

/// Checks the length of a new password, in characters.
///
/// # Errors
/// [`ApiError::PasswordTooShort`], [`ApiError::PasswordTooLong`].
pub(crate) fn check_password_length(state: &AppState, password: &str) -> Result<(), ApiError> {
    let limits = &state.config.limits;
    let characters = password.chars().count();
    if characters < usize::from(limits.password_min) {
        Err(ApiError::PasswordTooShort(limits.password_min))
    } else if characters > usize::from(limits.password_max) {
        Err(ApiError::PasswordTooLong(limits.password_max))
    } else {
        Ok(())
    }
}

/// Removes a mailbox with its mail; `false` where another request already did. On a system domain its
/// address is held.
///
/// # Errors
/// The store failed.
pub(crate) async fn remove(
    state: &AppState,
    actor: Actor,
    id: Uuid,
    now: Timestamp,
) -> Result<bool, ApiError> {
    let hold_days = state.config.limits.address_hold_days;
    Ok(state.store.acting(actor).remove_mailbox(id, now, hold_days).await?)
}
