//! Answers to requests over HTTP (the transport `Streamable HTTP`), each by itself: there are no sessions, so that a
//! session id gives no right, and any process may answer.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use http_body_util::combinators::BoxBody;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::service::McpService;

/// Bytes of a request.
pub const REQUEST_MAX: usize = 64 << 10;
/// Time between two comments of an answer that waits: what lies between cuts silent connections.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// An answer, which may be a stream that ends with the result.
pub type StatelessResponse = Response<BoxBody<Bytes, Infallible>>;

/// Answers a request, whose host, origin and token were checked. Dropping the answer ends the call.
pub async fn answer(service: McpService, request: Request<Bytes>) -> StatelessResponse {
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .with_legacy_session_mode(false)
        .with_sse_keep_alive(Some(KEEP_ALIVE))
        .with_sse_retry(None)
        .with_max_request_body_bytes(REQUEST_MAX);
    let new_service = move || Ok(service.clone());
    let http = StreamableHttpService::new(new_service, Arc::new(NeverSessionManager::default()), config);
    http.handle(request.map(Full::new)).await
}
