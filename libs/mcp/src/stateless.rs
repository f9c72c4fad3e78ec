//! Answers to requests over HTTP (the transport `Streamable HTTP`), each by itself: there are no sessions, so that a
//! session id gives no right, and any process may answer.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};

use crate::service::McpService;

/// Bytes of a request.
pub const REQUEST_MAX: usize = 64 << 10;
/// Time between two comments of an answer that waits: what lies between cuts silent connections.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What an answer may be.
const MEDIA_TYPES: &str = "application/json, text/event-stream";

/// An answer, which may be a stream that ends with the result.
pub type StatelessResponse = Response<BoxBody<Bytes, Infallible>>;

/// Codes of errors in JSON-RPC.
const PARSE_ERROR: i32 = -32_700;
const INVALID_REQUEST: i32 = -32_600;
const SERVER_ERROR: i32 = -32_000;

/// Answers a request, whose host, origin and token were checked. Dropping the answer ends the call.
pub async fn answer(service: McpService, mut request: Request<Bytes>) -> StatelessResponse {
    if serde_json::from_slice::<Value>(request.body()).is_err() {
        return error_response(StatusCode::BAD_REQUEST, PARSE_ERROR, "The body is not valid JSON.");
    }
    if accepts_anything(request.headers()) {
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static(MEDIA_TYPES));
    }
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .with_legacy_session_mode(false)
        .with_sse_keep_alive(Some(KEEP_ALIVE))
        .with_sse_retry(None)
        .with_max_request_body_bytes(REQUEST_MAX);
    let new_service = move || Ok(service.clone());
    let http = StreamableHttpService::new(new_service, Arc::new(NeverSessionManager::default()), config);
    let response = http.handle(request.map(Full::new)).await;
    if response.status().is_success() { response } else { as_json_rpc(response).await }
}

/// The error of a request that was refused before it was a call: a sentence, and the code of the interface.
pub fn transport_error(code: &str, message: &str) -> Value {
    json!({
        "jsonrpc": "2.0",
        "id": null,
        "error": {"code": SERVER_ERROR, "message": message, "data": {"error": code}},
    })
}

/// Whether a client names no media type that it wants.
fn accepts_anything(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(ACCEPT).iter().peekable();
    values.peek().is_none()
        || values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).any(|range| {
            let range = range.split(';').next().unwrap_or_default();
            range.trim() == "*/*"
        })
}

/// An error of the SDK, which is plain text in some cases, as one of JSON-RPC.
async fn as_json_rpc(response: StatelessResponse) -> StatelessResponse {
    let (parts, body) = response.into_parts();
    let body = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(never) => match never {},
    };
    if serde_json::from_slice::<Value>(&body).is_ok() {
        return Response::from_parts(parts, Full::new(body).boxed());
    }
    match parts.status {
        // The media type was checked: the SDK means JSON that is no message.
        StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            error_response(StatusCode::BAD_REQUEST, INVALID_REQUEST, "The body is no message of JSON-RPC.")
        }
        status => error_response(status, SERVER_ERROR, &String::from_utf8_lossy(&body)),
    }
}

fn error_response(status: StatusCode, code: i32, message: &str) -> StatelessResponse {
    let error = json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message}});
    let mut response = Response::new(Full::new(Bytes::from(error.to_string())).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
