//! One connection from accept to close.

use std::convert::Infallible;
use std::future::{Future as _, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, ready};

use axum::Router;
use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::header::CONNECTION;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tempmail_admission::{ClientNetwork, Share};
use tempmail_runtime::shutdown::Shutdown;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::task_tracker::TaskTrackerToken;
use tower::ServiceExt as _;

use super::client::PeerAddr;
use super::deadline::{Activity, RequestBody, RequestInFlight, ResponseBody, WatchedIo};

/// Bytes of a request's header section.
const HEADER_MAX: usize = 32 << 10;

/// What a connection holds while it is open.
pub(crate) struct ConnectionPermits {
    pub(crate) activity: Activity,
    /// Among the connections of the server and of the client.
    pub(crate) _share: Share<ClientNetwork>,
    /// Keeps the server running until the connection ends.
    pub(crate) _running: TaskTrackerToken,
}

/// A connection, as its requests see it. A handler that upgrades the connection keeps this handle while
/// the socket is open.
#[derive(Clone)]
pub(crate) struct Connection {
    activity: Activity,
    _permits: Arc<ConnectionPermits>,
}

impl Connection {
    /// Since when the client has been reading nothing of what waits to be written.
    pub(crate) fn stalled_since(&self) -> Option<Instant> {
        self.activity.stalled_since()
    }

    /// Ends the request in flight when the client closes its side, because it waits or streams.
    pub(crate) fn end_with_input(&self) {
        self.activity.end_with_input();
    }

    /// Delays the close of the connection until the client has stopped sending.
    pub(crate) fn linger(&self) {
        self.activity.expect_more_input();
    }
}

/// Extracted by the handlers of requests that wait or stream: each ends when its client closes its side.
pub(crate) struct EndsWithInput;

impl<S: Sync> FromRequestParts<S> for EndsWithInput {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        // A tool's request has no connection; that of its caller has.
        if let Some(connection) = parts.extensions.get::<Connection>() {
            connection.end_with_input();
        }
        Ok(Self)
    }
}

/// Answers the requests of a connection until it ends, is upgraded, exceeds a deadline, or `shutdown` drains (after the
/// request in flight) or stops (at once).
pub(crate) async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    shutdown: Shutdown,
    permits: ConnectionPermits,
) {
    let activity = permits.activity.clone();
    let io = TokioIo::new(WatchedIo::new(stream, activity.clone()));
    let handle = Connection { activity: activity.clone(), _permits: Arc::new(permits) };
    let service = service_fn(move |request| {
        // Not when it is first polled: the connection may see before that its client has closed its side.
        let in_flight = handle.activity.begin_request();
        respond(request, peer, router.clone(), handle.clone(), in_flight)
    });
    let mut connection =
        pin!(http1::Builder::new().max_buf_size(HEADER_MAX).serve_connection(io, service).with_upgrades());
    let mut drain = pin!(shutdown.drain.cancelled());
    let mut stop = pin!(shutdown.stop.cancelled());
    let mut timer = pin!(sleep_until(Instant::now()));
    let mut draining = false;
    poll_fn(|cx| {
        if stop.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        if !draining && drain.as_mut().poll(cx).is_ready() {
            draining = true;
            connection.as_mut().graceful_shutdown();
        }
        // An error of the connection is the client's: there is nothing to do about it.
        if connection.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        // Polling the connection may have moved the deadline.
        while let Some(deadline) = activity.deadline() {
            if timer.deadline() != deadline {
                timer.as_mut().reset(deadline);
            }
            ready!(timer.as_mut().poll(cx));
            // A deadline may have been moved when it was reached.
            if activity.deadline().is_some_and(|deadline| deadline <= Instant::now()) {
                count_ended(activity.cut_reason());
                return Poll::Ready(());
            }
        }
        Poll::Pending
    })
    .await;
}

/// Counts a connection that the server ends, or does not serve.
pub(crate) fn count_ended(reason: &'static str) {
    metrics::counter!("tempmail_http_connections_ended_total", "reason" => reason).increment(1);
}

async fn respond(
    request: Request<Incoming>,
    peer: SocketAddr,
    router: Router,
    connection: Connection,
    in_flight: RequestInFlight,
) -> Result<Response<ResponseBody>, Infallible> {
    let activity = connection.activity.clone();
    let mut request = request.map(|body| Body::new(RequestBody::new(body, activity.clone())));
    request.extensions_mut().insert(PeerAddr(peer));
    request.extensions_mut().insert(connection);
    let mut response = router.oneshot(request).await?;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        activity.upgrade();
    }
    if activity.has_unread_body() {
        // The rest of the body is read and dropped until the client stops sending: no request can follow.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response.map(|body| ResponseBody { body, _in_flight: in_flight }))
}
