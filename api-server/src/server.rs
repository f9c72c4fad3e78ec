//! The HTTP server: HTTP/1.1 over the router, bounded connections, graceful drain.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tempmail_bus::SharedBus;
use tempmail_model::clock::Clock;
use tempmail_runtime::config::Config;
use tempmail_runtime::keys::Keys;
use tempmail_runtime::readiness::Readiness;
use tempmail_runtime::role::RoleFuture;
use tempmail_runtime::shutdown::Shutdown;
use tempmail_store::Store;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use crate::auth::SignInLink;
use crate::http::client::ClientResolver;
use crate::http::client_connections::ClientConnections;
use crate::http::connection::{self, ConnectionPermits};
use crate::http::deadline::{Activity, ActivityLimits};
use crate::router::router;
use crate::state::AppState;

/// Connections that wait to be accepted: when a process restarts, all of its clients reconnect at once.
/// The system may allow fewer (`net.core.somaxconn`).
const BACKLOG: u32 = 4_096;

/// Pause after the operating system refused a connection (no file descriptors left).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Bytes of an answer that the operating system takes before the client can receive them.
const UNSENT: u32 = 128 << 10;

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
    sign_in_link: Option<SignInLink>,
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
        Ok(Self { listener, config, store, bus, clock, keys, sign_in_link: None, readiness })
    }

    /// Also signs in to the dashboard by a link, once.
    #[must_use]
    pub fn with_sign_in_link(self, link: SignInLink) -> Self {
        Self { sign_in_link: Some(link), ..self }
    }

    /// The address that the server listens on.
    ///
    /// # Panics
    /// The operating system does not know the address of its own socket.
    pub fn local_addr(&self) -> SocketAddr {
        self.listener.local_addr().expect("a socket that listens has an address")
    }

    /// Serves, once Postgres is available, until `shutdown` drains; then stops listening, completes the requests in
    /// flight, and returns once that is done or `shutdown` stops.
    ///
    /// # Errors
    /// Postgres refuses a statement of the start, or `secrets.keys` can't open what the store keeps.
    pub fn run(self, shutdown: Shutdown) -> RoleFuture {
        Box::pin(self.serve(shutdown))
    }

    async fn serve(self, shutdown: Shutdown) -> anyhow::Result<()> {
        let Self { listener, config, store, bus, clock, keys, sign_in_link, readiness } = self;
        let state =
            AppState::start(config.clone(), store, bus, clock, &keys, readiness.clone(), shutdown.clone());
        let Some(state) = shutdown.drain.run_until_cancelled(state).await else { return Ok(()) };
        let state = state?;
        if let Some(link) = sign_in_link {
            state.sign_in_link.put(link);
        }
        let router = router(state);
        let clients = ClientResolver::new(&config.http);
        let client_connections = ClientConnections::new(config.http.connections_per_client);
        let server_permits = Arc::new(Semaphore::new(config.http.connections));
        let connections = TaskTracker::new();
        let limits = ActivityLimits {
            header_timeout: Duration::from_secs(config.http.header_seconds),
            min_drain_rate: config.http.min_drain_rate,
        };
        readiness.set_ready(COMPONENT);
        loop {
            let accepted = async {
                let permit = server_permits.clone().acquire_owned().await.ok();
                (permit, listener.accept().await)
            };
            let (server_permit, accepted) = tokio::select! {
                biased;
                () = shutdown.drain.cancelled() => break,
                accepted = accepted => accepted,
            };
            let Ok((stream, peer)) = accepted else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let client = clients.of_connection(peer.ip());
            let Some(client) = client_connections.add(client, Activity::new(limits)) else {
                connection::count_ended("refused");
                continue;
            };
            set_options(&stream);
            let permits = ConnectionPermits { _server: server_permit, client, _running: connections.token() };
            tokio::spawn(connection::serve(stream, peer, router.clone(), shutdown.clone(), permits));
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

/// Sends small segments at once, detects within 6 s a client that vanished without closing, and keeps little of an
/// answer in the system's memory, so that what is written is what the client reads.
fn set_options(stream: &TcpStream) {
    let keepalive = TcpKeepalive::new()
        .with_time(Duration::from_secs(3))
        .with_interval(Duration::from_secs(1))
        .with_retries(2);
    // A socket that refuses an option is served without it.
    let _ = stream.set_nodelay(true);
    let _ = SockRef::from(stream).set_tcp_keepalive(&keepalive);
    let _ = SockRef::from(stream).set_tcp_notsent_lowat(UNSENT);
}
