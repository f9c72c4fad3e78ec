//! Mailbox accounts as both of their surfaces change them.

use jiff::Timestamp;
use serde_json::{Value, json};
use tempmail_model::address::RecipientAddress;
use tempmail_model::id::{SHARED, new_id};
use tempmail_model::limits::Limits;
use tempmail_model::message::Arrival;
use uuid::Uuid;

use crate::error::ApiError;
use crate::state::AppState;

/// A new password, in an installation that does not set other lengths.
pub(crate) fn password_schema() -> Value {
    let limits = Limits::default();
    json!({"type": "string", "minLength": limits.password_min, "maxLength": limits.password_max,
           "examples": ["correct horse"]})
}

/// Whether a new password has a length that is allowed, in characters.
///
/// # Errors
/// [`ApiError::PasswordTooShort`], [`ApiError::PasswordTooLong`].
pub(crate) fn check_length(state: &AppState, password: &str) -> Result<(), ApiError> {
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

/// Removes a mailbox with its mail; `false` where another request was faster. On a system domain
/// its address is held.
///
/// # Errors
/// The store's.
pub(crate) async fn remove(
    state: &AppState,
    id: Uuid,
    domain: Uuid,
    address: &str,
    now: Timestamp,
) -> Result<bool, ApiError> {
    let hold_days = state.config.limits.address_hold_days;
    let removed = state.store.remove_mailbox(id, new_id(now), now, hold_days).await?;
    if removed {
        wake(state, address, domain, id);
    }
    Ok(removed)
}

/// Wakes those who wait at an address, so that they look again at whose it is.
pub(crate) fn wake(state: &AppState, address: &str, domain: Uuid, mailbox: Uuid) {
    let key = RecipientAddress::parse(address).map(|address| address.inbox_key());
    let by_address = key.into_iter().flat_map(|inbox| [(SHARED, inbox), (domain, inbox)]);
    let arrivals = by_address.chain([(mailbox, mailbox)]);
    state.bus.publish(arrivals.map(|(owner, inbox)| Arrival { seq: 0, owner, inbox }).collect());
}
