//! Server-sent events (HTML standard, 9.2): mail as it arrives, on a response that does not end.
//!
//! An idle stream costs its subscription: it has no task, no timer and no queue of its own.

mod event;
mod stream;

use std::convert::Infallible;
use std::future::ready;

use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, Uri};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream::{StreamExt as _, once, unfold};
use serde_json::json;
use tempmail_admission::Holder;
use tempmail_bus::PermitKey;
use tempmail_model::limits::STREAMS_PER_TOKEN;
use uuid::Uuid;

use super::cursor::{open_cursor, open_since};
use super::follower::{Patience, Start};
use super::scope::{self, Scope};
use crate::arrivals::Position;
use crate::auth::SubscriberCredential;
use crate::http::error::{ApiError, code};
use crate::http::parameter::unique_query_parameters;
use crate::openapi::{self, Operation};
use crate::state::AppState;
use stream::EventStream;

/// The media type of a stream.
pub(crate) const MEDIA_TYPE: &str = "text/event-stream";

/// The cursor that EventSource sends when it reconnects.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// The parameters in which clients that can't set header fields send it: event-source-polyfill, and clients of Mercure of
/// two generations.
const LAST_EVENT_ID_PARAMETERS: [&str; 3] = ["lastEventId", "lastEventID", "Last-Event-ID"];

/// Describes a stream: its parameters, and its answers but for those of its scope.
pub(crate) fn described(operation: Operation) -> Operation {
    operation
        .description(
            "The stream first sends an id, which is a cursor, without an event. Each message is an event \
             `new_email`, whose data is a summary as in the long-polls and whose id is the cursor after \
             it. Every 15 s there is a comment with the cursor reached. `Last-Event-ID` continues after a \
             cursor and takes precedence over `since`; an invalid one is ignored. `lastEventId` does the \
             same for clients that can't set header fields. Without any of them, the stream begins now.",
        )
        .parameter(openapi::query(
            "since",
            "Cursor: begin after it. `0`: begin with the oldest unexpired mail.",
            json!({"type": "string", "minLength": 1}),
        ))
        .parameter(openapi::query(
            "lastEventId",
            "Cursor: begin after it, whatever `since` says. `lastEventID` and `Last-Event-ID` are the same parameter.",
            json!({"type": "string"}),
        ))
        .binary(200, MEDIA_TYPE, "Events, until the client disconnects or may no longer read.")
        .fails(&[code::INVALID_REQUEST, code::TOKEN_BUSY, code::SSE_UNAVAILABLE])
}

/// Opens a stream of the mail of `scope`: everything after `since`, or from now on.
///
/// # Errors
/// [`ApiError::SseUnavailable`], [`ApiError::TokenBusy`], [`ApiError::NotFound`] where the caller may not
/// read the scope; Postgres is unavailable.
pub(crate) async fn open(
    state: &AppState,
    credential: SubscriberCredential,
    scope: Scope,
    since: Option<Position>,
) -> Result<Response, ApiError> {
    if state.arrivals.is_stale() {
        return Err(ApiError::SseUnavailable);
    }
    let of_tenant = Holder { key: credential.tenant, cap: usize::MAX };
    let share = state.streams.try_acquire([of_tenant], 1).map_err(|_exceeded| ApiError::SseUnavailable)?;
    let key = PermitKey::TokenStreams(credential.token);
    let token_permit = state.bus.acquire(key, STREAMS_PER_TOKEN).await.ok_or(ApiError::TokenBusy)?;
    let start = since.map_or(Start::Now, Start::After);
    let follower = scope::follow(state, credential, scope, start, Patience::Stream);
    let permits = (share, token_permit);
    let (stream, first) = EventStream::open(state.clone(), follower, permits).await?;
    let first = once(ready(Ok::<_, Infallible>(first)));
    let later = unfold(stream, |mut stream| async move {
        let chunk: Bytes = stream.next().await?;
        Some((Ok(chunk), stream))
    });
    let fields = [
        (CONTENT_TYPE, MEDIA_TYPE),
        (CACHE_CONTROL, "no-store"),
        // Disables buffering in nginx and in proxies that follow its convention.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((fields, Body::from_stream(first.chain(later))).into_response())
}

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
