//! Server-sent events (HTML standard, 9.2): mail as it arrives, on an answer that does not end.
//!
//! An idle stream costs what it listens with: no task, no timer and no queue of its own.

mod frame;
mod place;
mod stream;

use std::convert::Infallible;
use std::future::ready;

use axum::body::{Body, Bytes};
use axum::http::HeaderName;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream::{StreamExt as _, once, unfold};
use tempmail_bus::PermitKey;
use tempmail_model::limits::STREAMS_PER_TOKEN;

pub(crate) use place::Streams;

use crate::auth::LiveCaller;
use crate::error::V1Error;
use crate::listener::{Listener, Scope};
use crate::state::AppState;
use stream::EventStream;

/// The media type of a stream.
pub(crate) const MEDIA_TYPE: &str = "text/event-stream";

/// Opens a stream of the mail of `scope`: everything after `since`, or from now on.
///
/// # Errors
/// [`V1Error::SseUnavailable`], [`V1Error::TokenBusy`], [`V1Error::NotFound`] where the caller may
/// not read the scope, or Postgres is away.
pub(crate) async fn open(
    state: &AppState,
    caller: LiveCaller,
    scope: Scope,
    since: Option<i64>,
) -> Result<Response, V1Error> {
    if state.arrivals.is_blind() {
        return Err(V1Error::SseUnavailable);
    }
    let of_process = state.streams.take().ok_or(V1Error::SseUnavailable)?;
    let of_token = PermitKey::TokenStreams(caller.token);
    let of_token = state.bus.acquire(of_token, STREAMS_PER_TOKEN).await.ok_or(V1Error::TokenBusy)?;
    let listener = Listener::new(state, caller, scope);
    let (stream, first) = EventStream::begin(state.clone(), listener, since, (of_process, of_token)).await?;
    let first = once(ready(Ok::<_, Infallible>(first)));
    let later = unfold(stream, |mut stream| async move {
        let octets: Bytes = stream.next().await?;
        Some((Ok(octets), stream))
    });
    let fields = [
        (CONTENT_TYPE, MEDIA_TYPE),
        (CACHE_CONTROL, "no-store"),
        // nginx, and what learned from it, passes on what it gets.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((fields, Body::from_stream(first.chain(later))).into_response())
}
