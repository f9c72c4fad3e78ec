//! Server-sent events (HTML standard, 9.2): mail as it arrives, on a response that does not end.
//!
//! An idle stream costs its subscription: it has no task, no timer and no queue of its own.

mod event;
mod query;
mod stream;

use std::convert::Infallible;
use std::future::ready;

use axum::body::{Body, Bytes};
use axum::http::HeaderName;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream::{StreamExt as _, once, unfold};
use serde_json::json;
use tempmail_admission::Holder;
use tempmail_bus::PermitKey;
use tempmail_model::limits::STREAMS_PER_TOKEN;

use super::subscription::{Scope, Subscription};
use crate::arrivals::Position;
use crate::auth::SubscriberCredential;
use crate::http::error::{ApiError, code};
use crate::openapi::{self, Operation};
use crate::state::AppState;
pub(crate) use query::StreamQuery;
use stream::EventStream;

/// The media type of a stream.
pub(crate) const MEDIA_TYPE: &str = "text/event-stream";

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
    let subscription = Subscription::new(state, credential, scope);
    let permits = (share, token_permit);
    let (stream, first) = EventStream::open(state.clone(), subscription, since, permits).await?;
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
