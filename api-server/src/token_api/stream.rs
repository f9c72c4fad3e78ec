//! `/v1/sse/addr` and `/v1/sse/user`: streams of server-sent events.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, Uri};
use axum::response::Response;
use serde_json::json;
use uuid::Uuid;

use super::address::parse_address;
use super::cursor::open_cursor;
use crate::arrivals::Position;
use crate::auth::StreamCaller;
use crate::http::error::{ApiError, V1Error, code};
use crate::http::parameter::unique_query_parameters;
use crate::openapi::{Credential, Operation, Routes, query};
use crate::realtime::sse;
use crate::realtime::subscription::Scope;
use crate::state::AppState;

/// The cursor that EventSource sends when it reconnects.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The routes of `/v1/sse`.
pub(super) fn routes() -> Routes<AppState> {
    let stream = |id, summary| {
        Operation::new(id, Credential::LiveInQuery, summary)
            .description(
                "The stream first sends an id, which is a cursor, without an event. Each message is an event \
                 `new_email`, whose data is a summary as in the long-polls and whose id is the cursor after \
                 it. Every 15 s there is a comment with the cursor reached. `Last-Event-ID` continues after a \
                 cursor and takes precedence over `since`; an invalid one is ignored. Without \
                 either, the stream begins now.",
            )
            .parameter(query("since", "Cursor: begin after it.", json!({"type": "string", "minLength": 1})))
            .binary(200, sse::MEDIA_TYPE, "Events, until the client disconnects or may no longer read.")
            .fails(&[code::INVALID_REQUEST, code::TOKEN_BUSY, code::SSE_UNAVAILABLE])
    };
    Routes::new()
        .get(
            "/v1/sse/addr",
            stream("streamAddress", "Stream the mail to an address")
                .parameter(json!({"name": "address", "in": "query", "required": true,
                                  "description": "The exact address; a space stands for `+`.",
                                  "schema": {"type": "string", "pattern": "^.+@.+$"}}))
                .fails(&[code::NOT_FOUND]),
            stream_address,
        )
        .get(
            "/v1/sse/user",
            stream("streamOwned", "Stream the mail to everything the tenant owns"),
            stream_owned,
        )
}

async fn stream_address(
    State(state): State<AppState>,
    StreamCaller(caller): StreamCaller,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, V1Error> {
    let query = StreamQuery::parse(&uri)?;
    let since = query.start(&state, caller.tenant, &headers)?;
    let address = query.address.ok_or(ApiError::InvalidRequest("`address` is missing.".into()))?;
    let address = parse_address(&address.replace(' ', "+"))?;
    Ok(sse::open(&state, caller.into(), Scope::Address(Arc::new(address)), since).await?)
}

async fn stream_owned(
    State(state): State<AppState>,
    StreamCaller(caller): StreamCaller,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, V1Error> {
    let since = StreamQuery::parse(&uri)?.start(&state, caller.tenant, &headers)?;
    Ok(sse::open(&state, caller.into(), Scope::Owned, since).await?)
}

/// The query of a stream.
#[derive(Debug)]
struct StreamQuery {
    address: Option<String>,
    /// A cursor, still sealed.
    since: Option<String>,
}

impl StreamQuery {
    /// Parses the query of a request.
    ///
    /// # Errors
    /// [`ApiError::InvalidRequest`]: a parameter is repeated.
    fn parse(uri: &Uri) -> Result<Self, ApiError> {
        let [address, since] = unique_query_parameters(uri, ["address", "since"])
            .ok_or(ApiError::InvalidRequest("Each query parameter must be given once.".into()))?;
        Ok(Self { address, since })
    }

    /// The position to start after; `None` is now.
    ///
    /// # Errors
    /// [`ApiError::InvalidRequest`]: `since` is not a cursor of the tenant.
    fn start(
        &self,
        state: &AppState,
        tenant: Uuid,
        headers: &HeaderMap,
    ) -> Result<Option<Position>, ApiError> {
        let since = self.since.as_deref().map(|cursor| open_cursor(state, tenant, cursor)).transpose()?;
        // Invalid ids are ignored: EventSource would send a rejected one again on every reconnect.
        let last =
            headers.get(LAST_EVENT_ID).and_then(|id| open_cursor(state, tenant, id.to_str().ok()?).ok());
        Ok(last.or(since))
    }
}
