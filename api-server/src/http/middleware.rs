//! The middleware that every request passes: limits before any work, and headers of every answer.

use std::net::{IpAddr, Ipv4Addr};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, REFERRER_POLICY, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::FutureExt as _;
use tempmail_model::chance;
use tempmail_model::surface::DropInSurface;
use tempmail_runtime::config::Config;
use tempmail_runtime::known_host;
use tokio::time::sleep;
use tracing::Instrument as _;

use super::client::{Client, ClientResolver, PeerAddr};
use super::error::{ApiError, ErrorForm, MCP_PATHS, RequestRefusal};
use super::json_body::BODY_MAX;
use super::rate_limit::{RateLimitHeaders, RequestLimits};
use super::{cors, own_origin};

/// How long the answer waits that a client has reached a limit of its address: a client that asks again at once costs
/// little then.
const CLIENT_LIMIT_DELAY: Duration = Duration::from_millis(200);

/// What requests are checked by before they are routed. Cheap to clone; clones share it.
#[derive(Clone)]
pub(crate) struct RequestPolicy(Arc<Policy>);

struct Policy {
    /// The drop-in surface, where its listener is one's own.
    drop_in: Option<DropInSurface>,
    config: Arc<Config>,
    clients: ClientResolver,
    limits: Arc<RequestLimits>,
}

impl RequestPolicy {
    pub(crate) fn new(config: Arc<Config>, limits: Arc<RequestLimits>) -> Self {
        Self::on_listener(None, config, limits)
    }

    /// That of a drop-in surface, which only pages of its own may use.
    pub(crate) fn of_drop_in(
        surface: DropInSurface,
        config: Arc<Config>,
        limits: Arc<RequestLimits>,
    ) -> Self {
        Self::on_listener(Some(surface), config, limits)
    }

    fn on_listener(drop_in: Option<DropInSurface>, config: Arc<Config>, limits: Arc<RequestLimits>) -> Self {
        let clients = ClientResolver::new(&config.http);
        Self(Arc::new(Policy { drop_in, config, clients, limits }))
    }
}

impl Policy {
    /// The form of errors of a request.
    fn error_form(&self, uri: &Uri) -> ErrorForm {
        self.drop_in.map_or_else(|| ErrorForm::of_path(uri.path()), ErrorForm::from)
    }

    /// The route in metrics: its pattern, never the path, since paths contain addresses. Those of drop-in surfaces
    /// begin with the surface.
    fn route_label(&self, route: Option<&MatchedPath>) -> String {
        let route = route.map_or("none", MatchedPath::as_str);
        self.drop_in.map_or_else(|| route.to_owned(), |surface| format!("{}:{route}", surface.as_str()))
    }

    /// Checks what does not depend on the route: the host, the page that a browser sends it from, and the size and
    /// encoding of the body.
    fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
        let http = &self.config.http;
        if self.drop_in.is_none() && MCP_PATHS.contains(&uri.path()) {
            // Clients of the protocol run beside browsers, and expect 403.
            known_host::require_known(http, uri, headers).map_err(ApiError::HostNotAllowed)?;
        } else {
            known_host::check(http, uri, headers).map_err(ApiError::MisdirectedRequest)?;
        }
        if self.drop_in.is_some() && !own_origin::is_of_same_host(headers) {
            return Err(ApiError::OriginNotAllowed);
        }
        if is_encoded(headers) {
            return Err(ApiError::UnsupportedMediaType);
        }
        let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        if length.is_some_and(|length: usize| length > BODY_MAX) {
            return Err(ApiError::PayloadTooLarge);
        }
        Ok(())
    }
}

/// Checks a request, has it answered, and completes the answer's headers.
pub(crate) async fn handle(
    State(RequestPolicy(policy)): State<RequestPolicy>,
    mut request: Request,
    next: Next,
) -> Response {
    let began = Instant::now();
    let shares = policy.drop_in.is_none();
    let origin = shares
        .then(|| cors::allowed_origin(&policy.config, request.uri().path(), request.headers()))
        .flatten();
    let method = method_label(request.method());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let peer =
        request.extensions().get::<PeerAddr>().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0.ip());
    let client = policy.clients.of_request(peer, request.headers());
    let id = request_id(request.headers(), &policy.clients, peer);
    let span = tracing::info_span!("request", request.id = id.to_str().unwrap_or_default());
    let rate_limit = RateLimitHeaders::default();
    request.extensions_mut().insert(client);
    request.extensions_mut().insert(rate_limit.clone());
    let form = policy.error_form(request.uri());
    let is_preflight = origin.is_some() && cors::is_preflight(request.method(), request.headers());
    let response = match policy.check(request.uri(), request.headers()) {
        Err(error) => error.into_response_on(form),
        Ok(()) if is_preflight => cors::preflight(request.headers()),
        Ok(()) => respond(form, request, next).instrument(span.clone()).await,
    };
    let mut response = count_refusal(&policy.limits, client, form, &rate_limit, response);
    if refusal(&response).is_some_and(RequestRefusal::is_of_client_limit) {
        sleep(CLIENT_LIMIT_DELAY).await;
    }
    let headers = response.headers_mut();
    rate_limit.write_to(headers);
    if let Some(origin) = origin {
        cors::allow_origin(headers, origin);
    }
    headers.insert(X_REQUEST_ID, id);
    set_default_headers(headers);
    let route = policy.route_label(route.as_ref());
    let (status, seconds) = (response.status(), began.elapsed().as_secs_f64());
    span.in_scope(|| {
        tracing::debug!(http.method = method, http.route = route, http.status = status.as_u16(), "answered");
    });
    let labels = [("method", method.to_owned()), ("route", route.clone())];
    metrics::histogram!("tempmail_http_request_seconds", &labels).record(seconds);
    metrics::counter!("tempmail_http_requests_total", "method" => method, "route" => route,
        "status" => status.as_str().to_owned())
    .increment(1);
    response
}

/// Whether a request's body has an encoding. `identity` is none (RFC 9110 8.4.1).
fn is_encoded(headers: &HeaderMap) -> bool {
    let values = headers.get_all(CONTENT_ENCODING).iter().map(|value| value.to_str().unwrap_or("unknown"));
    let mut encodings = values.flat_map(|value| value.split(',')).map(str::trim);
    encodings.any(|encoding| !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity"))
}

/// Counts a request that was refused. One whose credential was not accepted is answered 429 instead where the client
/// has made too many of them.
fn count_refusal(
    limits: &RequestLimits,
    client: Client,
    form: ErrorForm,
    rate_limit: &RateLimitHeaders,
    mut response: Response,
) -> Response {
    if refusal(&response).is_some_and(RequestRefusal::is_of_credential)
        && let Some(decision) = limits.count_refused(client)
        && let Err(error) = rate_limit.enforce("refused", decision)
    {
        response = error.into_response_on(form);
    }
    if let Some(refusal) = refusal(&response) {
        refusal.count();
    }
    response
}

/// Why a request was refused, if it was.
fn refusal(response: &Response) -> Option<RequestRefusal> {
    response.extensions().get::<RequestRefusal>().copied()
}

/// The answer of the route; 500 where its handler panics.
async fn respond(form: ErrorForm, request: Request, next: Next) -> Response {
    AssertUnwindSafe(next.run(request)).catch_unwind().await.unwrap_or_else(|_panic| {
        tracing::error!("a request handler panicked");
        ApiError::Internal.into_response_on(form)
    })
}

/// Headers of every answer, unless the route set its own.
fn set_default_headers(headers: &mut HeaderMap) {
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

/// The method as a metric label: few values, whatever clients send.
fn method_label(method: &Method) -> &'static str {
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

/// The header field with the id of a request, in requests and answers.
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Characters of an id that a proxy gave.
const LENGTH_MAX: usize = 128;

/// The id that a trusted proxy gave the request, else a new one: other clients must not choose what is
/// written to the log. A copy: the field itself would keep the buffer of the whole header section.
fn request_id(headers: &HeaderMap, clients: &ClientResolver, peer: IpAddr) -> HeaderValue {
    let id = match headers.get(X_REQUEST_ID) {
        Some(given) if clients.is_trusted_proxy(peer) && is_plain(given) => {
            HeaderValue::from_bytes(given.as_bytes())
        }
        _ => HeaderValue::try_from(chance::uuid().to_string()),
    };
    id.expect("a plain id and a UUID are visible ASCII")
}

fn is_plain(id: &HeaderValue) -> bool {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"-_.:".contains(b);
    (1..=LENGTH_MAX).contains(&id.len()) && id.as_bytes().iter().all(plain)
}

#[cfg(test)]
mod tests {
    use tempmail_runtime::config::Http;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn takes_the_id_of_a_trusted_proxy_only() {
        let clients = ClientResolver::new(&Http {
            trusted_proxies: vec!["10.0.0.0/8".parse().unwrap()],
            ..Http::default()
        });
        let of = |peer: &str, id: &str| {
            let headers = HeaderMap::from_iter([(X_REQUEST_ID, HeaderValue::try_from(id).unwrap())]);
            request_id(&headers, &clients, peer.parse().unwrap()).to_str().unwrap().to_owned()
        };
        assert_eq!(of("10.0.0.1", "req_1.a:b-c"), "req_1.a:b-c");
        assert_ne!(of("192.0.2.1", "req_1"), "req_1");
        for wrong in ["", "a b", "name@inbox.example", &"x".repeat(129)] {
            assert!(Uuid::try_parse(&of("10.0.0.1", wrong)).is_ok(), "{wrong}");
        }
    }
}
