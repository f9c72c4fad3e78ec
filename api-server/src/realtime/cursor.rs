//! Cursors as clients send them.

use uuid::Uuid;

use crate::arrivals::Position;
use crate::http::error::ApiError;
use crate::state::AppState;

/// The position after which a client with this `since` cursor goes on.
///
/// # Errors
/// [`ApiError::InvalidRequest`] where the cursor was not sealed for this tenant.
pub(crate) fn open_cursor(state: &AppState, tenant: Uuid, cursor: &str) -> Result<Position, ApiError> {
    let opened = state.cursors.open(tenant, cursor).map_err(|_foreign| {
        ApiError::InvalidRequest("`since` must be a cursor of an earlier answer.".into())
    })?;
    Ok(state.arrivals.generations().resume(opened))
}
