//! Cursors as clients send them.

use uuid::Uuid;

use crate::arrivals::Position;
use crate::http::error::ApiError;
use crate::state::AppState;

/// The `since` of a client that wants all mail that it may read and that has not expired.
const FROM_THE_OLDEST: &str = "0";

/// The position after which a client with this `since` goes on: a cursor, or `0`.
///
/// # Errors
/// As [`open_cursor`].
pub(crate) fn open_since(state: &AppState, tenant: Uuid, since: &str) -> Result<Position, ApiError> {
    if since == FROM_THE_OLDEST {
        return Ok(state.arrivals.generations().oldest());
    }
    open_cursor(state, tenant, since)
}

/// The position after which a client with this cursor goes on.
///
/// # Errors
/// [`ApiError::InvalidRequest`] where the cursor was not sealed for this tenant.
pub(crate) fn open_cursor(state: &AppState, tenant: Uuid, cursor: &str) -> Result<Position, ApiError> {
    let opened = state.cursors.open(tenant, cursor).map_err(|_foreign| {
        ApiError::InvalidRequest("The cursor must be one of an earlier answer.".into())
    })?;
    Ok(state.arrivals.generations().resume(opened))
}
