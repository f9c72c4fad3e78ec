//! The HTTP server: HTTP/1.1 over the router, bounded connections, graceful drain.

mod connection;
mod cors;
mod deadline;
mod edge;
mod request_id;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::Uri;
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use socket2::{SockRef, TcpKeepalive};
use tempmail_bus::SharedBus;
use tempmail_model::clock::Clock;
use tempmail_runtime::config::Config;
use tempmail_runtime::keys::Keys;
use tempmail_runtime::readiness::Readiness;
use tempmail_runtime::shutdown::Shutdown;
use tempmail_store::Store;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use crate::error::{Surface, code};
use crate::openapi::{Routes, document};
use crate::place::Places;
use crate::state::AppState;
use crate::{mailbox_api, openapi, pro_api, token_api, websocket};

use connection::Held;

pub(crate) use connection::Connection;
pub(crate) use cors::origin_of;
pub(crate) use deadline::{LINGER, STALLED};

/// Connections that wait to be accepted: when a process comes back, so do all of its clients.
/// The system may allow fewer (`net.core.somaxconn`).
const BACKLOG: u32 = 4_096;

/// Octets of a request body.
pub(crate) const BODY_MAX: usize = 64 << 10;

/// Pause after the operating system refused a connection (no file descriptors left).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The name under which readiness reports the server.
const COMPONENT: &str = "http";

/// An API server that listens.
pub struct ApiServer {
    listener: TcpListener,
    config: Arc<Config>,
    store: Store,
    bus: SharedBus,
    clock: Arc<dyn Clock>,
    keys: Keys,
    readiness: Readiness,
}

impl ApiServer {
    /// Listens on `http.listen`; connections wait until [`Self::run`].
    ///
    /// # Errors
    /// The address can't be listened on.
    pub async fn bind(
        config: Arc<Config>,
        store: Store,
        bus: SharedBus,
        clock: Arc<dyn Clock>,
        keys: Keys,
        readiness: Readiness,
    ) -> anyhow::Result<Self> {
        let listener = listen(config.http.listen).map_err(|error| {
            anyhow::anyhow!("can't listen on http.listen {}: {error}", config.http.listen)
        })?;
        readiness.set_not_ready(COMPONENT, "not serving yet");
        Ok(Self { listener, config, store, bus, clock, keys, readiness })
    }

    /// Where it listens.
    ///
    /// # Panics
    /// The operating system does not know the address of its own socket.
    pub fn local_addr(&self) -> SocketAddr {
        self.listener.local_addr().expect("a socket that listens has an address")
    }

    /// Serves until `shutdown` drains; then stops listening, answers what is in hand, and
    /// returns once that is done or `shutdown` stops.
    ///
    /// # Errors
    /// None so far.
    pub async fn run(self, shutdown: Shutdown) -> anyhow::Result<()> {
        let Self { listener, config, store, bus, clock, keys, readiness } = self;
        let state =
            AppState::start(config.clone(), store, bus, clock, &keys, readiness.clone(), shutdown.clone());
        let router = router(state.clone());
        let places = Places::new(config.http.connections_per_client);
        let all = Arc::new(Semaphore::new(config.http.connections));
        let connections = TaskTracker::new();
        let head = Duration::from_secs(config.http.header_seconds);
        readiness.set_ready(COMPONENT);
        loop {
            let accepted = async {
                let place = all.clone().acquire_owned().await.ok();
                (place, listener.accept().await)
            };
            let (place, accepted) = tokio::select! {
                biased;
                () = shutdown.drain.cancelled() => break,
                accepted = accepted => accepted,
            };
            let Ok((stream, peer)) = accepted else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let Some(of_client) = places.take(state.clients.of_connection(peer.ip())) else { continue };
            set_options(&stream);
            let held = Held { _place: place, _of_client: of_client, _running: connections.token() };
            let serve = connection::serve(stream, peer, router.clone(), head, shutdown.clone(), held);
            tokio::spawn(serve);
        }
        drop(listener);
        readiness.set_not_ready(COMPONENT, "draining");
        connections.close();
        tokio::select! {
            () = connections.wait() => {}
            () = shutdown.stop.cancelled() => connections.wait().await,
        }
        Ok(())
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Answers at once, and learns within 6 s of a client that is gone without a word.
fn set_options(stream: &TcpStream) {
    let keepalive = TcpKeepalive::new()
        .with_time(Duration::from_secs(3))
        .with_interval(Duration::from_secs(1))
        .with_retries(2);
    // A socket that refuses options serves all the same.
    let _ = stream.set_nodelay(true);
    let _ = SockRef::from(stream).set_tcp_keepalive(&keepalive);
}

/// Every route of the interface.
fn routes() -> Routes {
    Routes::new()
        .merge(mailbox_api::routes())
        .merge(websocket::routes())
        .merge(pro_api::routes())
        .merge(token_api::routes())
        .merge(openapi::routes())
}

/// The OpenAPI 3.1 document of every route.
pub fn openapi_document() -> serde_json::Value {
    document(&routes())
}

fn router(state: AppState) -> Router {
    routes()
        .into_router()
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn_with_state(state.clone(), edge::edge))
        .with_state(state)
}

async fn not_found(uri: Uri) -> Response {
    Surface::of(uri.path()).answer(code::NOT_FOUND, "There is nothing at this path.")
}

async fn method_not_allowed(uri: Uri) -> Response {
    Surface::of(uri.path()).answer(code::METHOD_NOT_ALLOWED, "Use one of the methods that `Allow` lists.")
}
