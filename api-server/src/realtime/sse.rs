//! Server-sent events (HTML standard, 9.2): mail as it arrives, on a response that does not end.
//!
//! An idle stream costs its subscription: it has no task, no timer and no queue of its own.

mod event;
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

use super::subscription::{Scope, Subscription};
use crate::arrivals::Position;
use crate::auth::SubscriberCredential;
use crate::http::error::ApiError;
use crate::state::AppState;
use stream::EventStream;

/// The media type of a stream.
pub(crate) const MEDIA_TYPE: &str = "text/event-stream";

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
    let process_permit = state.stream_permits.acquire().ok_or(ApiError::SseUnavailable)?;
    let key = PermitKey::TokenStreams(credential.token);
    let token_permit = state.bus.acquire(key, STREAMS_PER_TOKEN).await.ok_or(ApiError::TokenBusy)?;
    let subscription = Subscription::new(state, credential, scope);
    let permits = (process_permit, token_permit);
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
