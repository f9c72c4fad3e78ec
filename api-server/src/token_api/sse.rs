//! `/v1/sse/addr` and `/v1/sse/user`: streams of server-sent events.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, Uri};
use axum::response::Response;
use serde_json::json;
use uuid::Uuid;

use super::inbox::parse_address;
use crate::auth::StreamCaller;
use crate::error::{V1Error, code};
use crate::listener::Scope;
use crate::openapi::{Credential, Operation, Routes, query};
use crate::parameter::texts_of_query;
use crate::sse;
use crate::state::AppState;

/// What EventSource sends when it comes back.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Their routes.
pub(super) fn routes() -> Routes {
    let stream = |id, summary| {
        Operation::new(id, Credential::LiveInQuery, summary)
            .description(
                "The stream first sends an id, which is a cursor, without an event; then an event \
                 `new_email` a message, whose data is a summary as the long-polls list it and whose id is \
                 the cursor after it; every 15 s a comment with the cursor reached. `Last-Event-ID` goes on \
                 after a cursor, and wins over `since`; one that is not the tenant's is ignored. Without \
                 either the stream begins now.",
            )
            .parameter(query("since", "Cursor: begin after it.", json!({"type": "string", "minLength": 1})))
            .binary(200, sse::MEDIA_TYPE, "Events, until the client leaves or may not read any more.")
            .fails(&[code::INVALID_REQUEST, code::TOKEN_BUSY, code::SSE_UNAVAILABLE])
    };
    Routes::new()
        .get(
            "/v1/sse/addr",
            stream("streamAddress", "Be told of mail to an address")
                .parameter(json!({"name": "address", "in": "query", "required": true,
                                  "description": "The exact address; a space stands for `+`.",
                                  "schema": {"type": "string", "pattern": "^.+@.+$"}}))
                .fails(&[code::NOT_FOUND]),
            stream_address,
        )
        .get(
            "/v1/sse/user",
            stream("streamOwned", "Be told of mail to everything the tenant owns"),
            stream_owned,
        )
}

async fn stream_address(
    State(state): State<AppState>,
    StreamCaller(caller): StreamCaller,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, V1Error> {
    let asked = Asked::of(&uri)?;
    let since = asked.begin(&state, caller.tenant, &headers)?;
    let address = asked.address.ok_or(V1Error::InvalidRequest)?;
    let address = parse_address(&address.replace(' ', "+"))?;
    sse::open(&state, caller, Scope::Address(Arc::new(address)), since).await
}

async fn stream_owned(
    State(state): State<AppState>,
    StreamCaller(caller): StreamCaller,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, V1Error> {
    let since = Asked::of(&uri)?.begin(&state, caller.tenant, &headers)?;
    sse::open(&state, caller, Scope::Owned, since).await
}

/// What the query asks for.
#[derive(Debug)]
struct Asked {
    address: Option<String>,
    /// A cursor, still sealed.
    since: Option<String>,
}

impl Asked {
    /// Reads the query of a request.
    ///
    /// # Errors
    /// [`V1Error::InvalidRequest`]: a parameter is there twice.
    fn of(uri: &Uri) -> Result<Self, V1Error> {
        let [address, since] = texts_of_query(uri, ["address", "since"]).ok_or(V1Error::InvalidRequest)?;
        Ok(Self { address, since })
    }

    /// The position to begin after; none is now.
    ///
    /// # Errors
    /// [`V1Error::InvalidRequest`]: `since` is no cursor of the tenant.
    fn begin(&self, state: &AppState, tenant: Uuid, headers: &HeaderMap) -> Result<Option<i64>, V1Error> {
        let open = |cursor: &str| state.cursors.open(tenant, cursor);
        let since =
            self.since.as_deref().map(open).transpose().map_err(|_foreign| V1Error::InvalidRequest)?;
        // EventSource would send one that can't be opened for ever.
        let last = headers.get(LAST_EVENT_ID).and_then(|id| open(id.to_str().ok()?).ok());
        Ok(last.or(since))
    }
}
