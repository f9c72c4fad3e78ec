//! One connection from its first octet to its last.

use std::convert::Infallible;
use std::future::{Future as _, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::CONNECTION;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tempmail_runtime::shutdown::Shutdown;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::task_tracker::TaskTrackerToken;
use tower::ServiceExt as _;

use super::deadline::{Activity, AnswerBody, RequestBody, WatchedIo};
use crate::client::Peer;
use crate::place::Place;

/// Octets of a request's header section.
const HEADER_MAX: usize = 32 << 10;

/// What a connection holds as long as it is open.
pub(super) struct Held {
    /// Its place among all of them.
    pub(super) _place: Option<OwnedSemaphorePermit>,
    /// Its place among those of its client.
    pub(super) _of_client: Place,
    /// The server does not end before it.
    pub(super) _running: TaskTrackerToken,
}

/// A connection, as its requests know it. Whoever upgrades it keeps this as long as the socket is
/// open.
#[derive(Clone)]
pub(crate) struct Connection {
    activity: Activity,
    _held: Arc<Held>,
}

impl Connection {
    /// Since when the client has been reading nothing of what waits for it.
    pub(crate) fn stalled_since(&self) -> Option<Instant> {
        self.activity.stalled_since()
    }

    /// Has the end of the connection wait until the client is done sending.
    pub(crate) fn linger(&self) {
        self.activity.expect_more();
    }
}

/// Answers the requests of a connection until it ends, becomes another protocol's, has been quiet
/// for too long, or `shutdown` drains (after the request in hand) or stops (at once).
pub(super) async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    head: Duration,
    shutdown: Shutdown,
    held: Held,
) {
    let activity = Activity::new(head);
    let io = TokioIo::new(WatchedIo::new(stream, activity.clone()));
    let of_requests = Connection { activity: activity.clone(), _held: Arc::new(held) };
    let service = service_fn(move |request| answer(request, peer, router.clone(), of_requests.clone()));
    let mut connection =
        pin!(http1::Builder::new().max_buf_size(HEADER_MAX).serve_connection(io, service).with_upgrades());
    let mut drain = pin!(shutdown.drain.cancelled());
    let mut stop = pin!(shutdown.stop.cancelled());
    let mut alarm = pin!(sleep_until(Instant::now()));
    let mut draining = false;
    poll_fn(|cx| {
        if stop.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        if !draining && drain.as_mut().poll(cx).is_ready() {
            draining = true;
            connection.as_mut().graceful_shutdown();
        }
        // How it ended is the client's affair.
        if connection.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        // What was polled just now may have moved the deadline.
        match activity.deadline() {
            None => Poll::Pending,
            Some(deadline) => {
                if alarm.deadline() != deadline {
                    alarm.as_mut().reset(deadline);
                }
                alarm.as_mut().poll(cx)
            }
        }
    })
    .await;
}

async fn answer(
    request: Request<Incoming>,
    peer: SocketAddr,
    router: Router,
    connection: Connection,
) -> Result<Response<AnswerBody>, Infallible> {
    let activity = connection.activity.clone();
    let in_hand = activity.begin();
    let mut request = request.map(|body| Body::new(RequestBody::new(body, activity.clone())));
    request.extensions_mut().insert(Peer(peer));
    request.extensions_mut().insert(connection);
    let mut response = router.oneshot(request).await?;
    if activity.left_a_body() {
        // What is left of the body is read and dropped until the client is done: no next request is.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response.map(|body| AnswerBody { body, _in_hand: in_hand }))
}
