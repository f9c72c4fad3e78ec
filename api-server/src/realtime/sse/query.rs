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
/// The parameters in which clients that can't set header fields send it: event-source-polyfill, and clients of Mercure of
/// two generations.
const LAST_EVENT_ID_PARAMETERS: [&str; 3] = ["lastEventId", "lastEventID", "Last-Event-ID"];

/// The query of a stream.
#[derive(Debug)]
pub(crate) struct StreamQuery {
    /// As it was sent.
    pub(crate) address: Option<String>,
    /// A cursor, still sealed, or `0`.
    since: Option<String>,
    /// A cursor, still sealed.
    last_event_id: Option<String>,
}

impl StreamQuery {
    /// Parses the query of a request.
    ///
    /// # Errors
    /// [`ApiError::InvalidRequest`]: a parameter is repeated.
    pub(crate) fn parse(uri: &Uri) -> Result<Self, ApiError> {
        let repeated = || ApiError::InvalidRequest("Each query parameter must be given once.".into());
        let [address, since] = unique_query_parameters(uri, ["address", "since"]).ok_or_else(repeated)?;
        let ids = unique_query_parameters(uri, LAST_EVENT_ID_PARAMETERS).ok_or_else(repeated)?;
        // An empty id is none (HTML 9.2.6).
        let last_event_id = ids.into_iter().flatten().find(|id| !id.is_empty());
        Ok(Self { address, since, last_event_id })
    }

    /// The position to start after; `None` is now.
    ///
    /// # Errors
    /// [`ApiError::InvalidRequest`]: a parameter is not a cursor of the tenant.
    pub(crate) fn start(
        &self,
        state: &AppState,
        tenant: Uuid,
        headers: &HeaderMap,
    ) -> Result<Option<Position>, ApiError> {
        let since = self.since.as_deref().map(|since| open_since(state, tenant, since)).transpose()?;
        let parameter = self.last_event_id.as_deref().map(|id| open_cursor(state, tenant, id)).transpose()?;
        // An invalid id in the header is ignored: EventSource would send a rejected one again on every reconnect.
        let field =
            headers.get(LAST_EVENT_ID).and_then(|id| open_cursor(state, tenant, id.to_str().ok()?).ok());
        Ok(field.or(parameter).or(since))
    }
}
