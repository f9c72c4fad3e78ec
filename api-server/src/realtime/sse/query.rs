//! The query of a stream.

use axum::http::{HeaderMap, HeaderName, Uri};
use uuid::Uuid;

use crate::arrivals::Position;
use crate::http::error::ApiError;
use crate::http::parameter::unique_query_parameters;
use crate::realtime::cursor::{open_cursor, open_since};
use crate::state::AppState;

/// The cursor that EventSource sends when it reconnects.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The query of a stream.
#[derive(Debug)]
pub(crate) struct StreamQuery {
    /// As it was sent.
    pub(crate) address: Option<String>,
    /// A cursor, still sealed, or `0`.
    since: Option<String>,
}

impl StreamQuery {
    /// Parses the query of a request.
    ///
    /// # Errors
    /// [`ApiError::InvalidRequest`]: a parameter is repeated.
    pub(crate) fn parse(uri: &Uri) -> Result<Self, ApiError> {
        let [address, since] = unique_query_parameters(uri, ["address", "since"])
            .ok_or(ApiError::InvalidRequest("Each query parameter must be given once.".into()))?;
        Ok(Self { address, since })
    }

    /// The position to start after; `None` is now.
    ///
    /// # Errors
    /// [`ApiError::InvalidRequest`]: `since` is not a cursor of the tenant.
    pub(crate) fn start(
        &self,
        state: &AppState,
        tenant: Uuid,
        headers: &HeaderMap,
    ) -> Result<Option<Position>, ApiError> {
        let since = self.since.as_deref().map(|since| open_since(state, tenant, since)).transpose()?;
        // Invalid ids are ignored: EventSource would send a rejected one again on every reconnect.
        let last =
            headers.get(LAST_EVENT_ID).and_then(|id| open_cursor(state, tenant, id.to_str().ok()?).ok());
        Ok(last.or(since))
    }
}
