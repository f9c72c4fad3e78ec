//! What every request passes: limits before any work, and what every answer carries.

use std::net::{IpAddr, Ipv4Addr};
use std::panic::AssertUnwindSafe;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, REFERRER_POLICY, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;
use tracing::Instrument as _;

use super::{BODY_MAX, cors, request_id};
use crate::client::{Client, Peer};
use crate::error::{ApiError, Surface, V1Error};
use crate::limit::RateReport;
use crate::state::AppState;

/// Admits a request, has it answered, and dresses the answer.
pub(super) async fn edge(State(state): State<AppState>, mut request: Request, next: Next) -> Response {
    let began = Instant::now();
    let http = &state.config.http;
    let origin = cors::allowed_origin(http, request.headers());
    let method = method_name(request.method());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let peer =
        request.extensions().get::<Peer>().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0.ip());
    let client = state.clients.of_request(peer, request.headers());
    let id = request_id::of(request.headers(), &state.clients, peer);
    let span = tracing::info_span!("request", request.id = id.to_str().unwrap_or_default());
    let report = RateReport::default();
    request.extensions_mut().insert(client);
    request.extensions_mut().insert(report.clone());
    let mut response = if origin.is_some() && cors::is_preflight(request.method(), request.headers()) {
        cors::preflight()
    } else {
        match refusal(&state, client, request.uri(), request.headers(), request.extensions()).await {
            Some(refusal) => refusal,
            None => answer(request, next).instrument(span.clone()).await,
        }
    };
    let headers = response.headers_mut();
    report.write(headers);
    if let Some(origin) = origin {
        cors::admit(headers, origin);
    }
    headers.insert(request_id::X_REQUEST_ID, id);
    dress(headers);
    // The route's pattern, never the path: paths hold addresses.
    let route = route.as_ref().map_or("none", MatchedPath::as_str);
    let (status, seconds) = (response.status(), began.elapsed().as_secs_f64());
    span.in_scope(|| {
        tracing::debug!(http.method = method, http.route = route, http.status = status.as_u16(), "answered");
    });
    let labels = [("method", method.to_owned()), ("route", route.to_owned())];
    metrics::histogram!("tempmail_http_request_seconds", &labels).record(seconds);
    metrics::counter!("tempmail_http_requests_total", "method" => method, "route" => route.to_owned(),
        "status" => status.as_str().to_owned())
    .increment(1);
    response
}

/// What is wrong with a request before anybody looks at what it wants.
async fn refusal(
    state: &AppState,
    client: Client,
    uri: &Uri,
    headers: &HeaderMap,
    extensions: &Extensions,
) -> Option<Response> {
    let surface = Surface::of(uri.path());
    // `/v1` and `/pro/api` are counted by token, when that is known.
    if surface == Surface::Api
        && !uri.path().starts_with("/pro/api/")
        && let Some(decision) = state.limits.of_client(client).await
    {
        RateReport::put(extensions, "client", decision);
        if !decision.allowed {
            return Some(ApiError::RateLimitExceeded { retry_after: decision.retry_after }.into_response());
        }
    }
    if headers.contains_key(CONTENT_ENCODING) {
        return Some(of(surface, ApiError::UnsupportedMediaType, V1Error::UnsupportedMediaType));
    }
    let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: usize| length > BODY_MAX) {
        return Some(of(surface, ApiError::PayloadTooLarge, V1Error::PayloadTooLarge));
    }
    None
}

/// The answer of the route; where it panics, that is our fault and no more than that.
async fn answer(request: Request, next: Next) -> Response {
    let surface = Surface::of(request.uri().path());
    AssertUnwindSafe(next.run(request)).catch_unwind().await.unwrap_or_else(|_panic| {
        tracing::error!("a request handler panicked");
        of(surface, ApiError::Internal, V1Error::Internal)
    })
}

/// One error in the form of its surface.
fn of(surface: Surface, api: ApiError, v1: V1Error) -> Response {
    match surface {
        Surface::Api => api.into_response(),
        Surface::V1 => v1.into_response(),
    }
}

/// Headers of every answer, unless the route set its own.
fn dress(headers: &mut HeaderMap) {
    headers.append(VARY, HeaderValue::from_static("origin"));
    let defaults = [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in defaults {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}

/// A label of few values, whatever clients send.
fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}
