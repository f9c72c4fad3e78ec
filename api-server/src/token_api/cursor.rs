//! Cursors as clients send them.

use uuid::Uuid;

use crate::http::error::ApiError;
use crate::state::AppState;

/// The position of a `since` cursor.
///
/// # Errors
/// [`ApiError::InvalidRequest`] where the cursor was not sealed for this tenant.
pub(super) fn open_cursor(state: &AppState, tenant: Uuid, cursor: &str) -> Result<i64, ApiError> {
    state
        .cursors
        .open(tenant, cursor)
        .map_err(|_foreign| ApiError::InvalidRequest("`since` must be a cursor of an earlier answer.".into()))
}
