//! The HTTP server: HTTP/1.1 over the router, bounded connections, graceful drain.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures_util::future::join_all;
use socket2::{SockRef, TcpKeepalive};
use tempmail_admission::{ClientNetwork, Shares};
use tempmail_bus::SharedBus;
use tempmail_model::clock::Clock;
use tempmail_model::surface::DropInSurface;
use tempmail_runtime::config::Config;
use tempmail_runtime::keys::Keys;
use tempmail_runtime::listener::Listener;
use tempmail_runtime::readiness::Readiness;
use tempmail_runtime::role::RoleFuture;
use tempmail_runtime::shutdown::Shutdown;
use tempmail_store::Store;
use tokio::net::TcpStream;
use tokio_util::task::TaskTracker;

use crate::auth::SignInLink;
use crate::compat;
use crate::http::client::ClientResolver;
use crate::http::connection::{self, ConnectionPermits};
use crate::http::deadline::{Activity, ActivityLimits};
use crate::router::router;
use crate::state::AppState;

/// Pause after the operating system refused a connection (no file descriptors left).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Bytes of an answer that the operating system takes before the client can receive them.
const UNSENT: u32 = 128 << 10;

/// The name under which readiness reports the server.
const COMPONENT: &str = "http";

/// An API server that listens.
pub struct ApiServer {
    listener: Listener,
    drop_ins: Vec<(DropInSurface, Listener)>,
    config: Arc<Config>,
    store: Store,
    bus: SharedBus,
    clock: Arc<dyn Clock>,
    keys: Keys,
    sign_in_link: Option<SignInLink>,
    readiness: Readiness,
}

impl ApiServer {
    /// Listens on `http.listen`, and on the address of each drop-in surface that has one; connections wait until
    /// [`Self::run`].
    ///
    /// # Errors
    /// An address can't be listened on.
    pub async fn bind(
        config: Arc<Config>,
        store: Store,
        bus: SharedBus,
        clock: Arc<dyn Clock>,
        keys: Keys,
        readiness: Readiness,
    ) -> anyhow::Result<Self> {
        let listener = listen("http.listen", config.http.listen)?;
        let mut drop_ins = Vec::new();
        for surface in DropInSurface::ALL {
            if let Some(address) = config.compat.of(surface).listen {
                drop_ins.push((surface, listen(&format!("compat.{}.listen", surface.as_str()), address)?));
            }
        }
        readiness.set_not_ready(COMPONENT, "not serving yet");
        Ok(Self { listener, drop_ins, config, store, bus, clock, keys, sign_in_link: None, readiness })
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
        address_of(&self.listener)
    }

    /// The address that a drop-in surface listens on, if it is on.
    ///
    /// # Panics
    /// As [`Self::local_addr`].
    pub fn drop_in_addr(&self, surface: DropInSurface) -> Option<SocketAddr> {
        self.drop_ins.iter().find(|(of, _)| *of == surface).map(|(_, listener)| address_of(listener))
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
        let Self { listener, drop_ins, config, store, bus, clock, keys, sign_in_link, readiness } = self;
        let state =
            AppState::start(config.clone(), store, bus, clock, &keys, readiness.clone(), shutdown.clone());
        let Some(state) = shutdown.drain.run_until_cancelled(state).await else { return Ok(()) };
        let state = state?;
        if let Some(link) = sign_in_link {
            state.sign_in_link.put(link);
        }
        let acceptor = Acceptor::new(&config, shutdown.clone());
        let drop_ins = drop_ins
            .into_iter()
            .map(|(surface, listener)| (listener, compat::router(surface, state.clone())));
        let mut accepting: Vec<_> =
            drop_ins.map(|(listener, router)| acceptor.accept_until_drained(listener, router)).collect();
        accepting.push(acceptor.accept_until_drained(listener, router(state.clone())));
        drop(state);
        readiness.set_ready(COMPONENT);
        join_all(accepting).await;
        readiness.set_not_ready(COMPONENT, "draining");
        acceptor.running.close();
        tokio::select! {
            () = acceptor.running.wait() => {}
            () = shutdown.stop.cancelled() => acceptor.running.wait().await,
        }
        Ok(())
    }
}

/// Accepts the connections of all listeners of a server, within its limits.
struct Acceptor {
    clients: ClientResolver,
    connections: Shares<ClientNetwork>,
    connections_per_client: usize,
    running: TaskTracker,
    limits: ActivityLimits,
    shutdown: Shutdown,
}

impl Acceptor {
    fn new(config: &Config, shutdown: Shutdown) -> Self {
        let http = &config.http;
        Self {
            clients: ClientResolver::new(http),
            connections: Shares::new(http.connections),
            connections_per_client: http.connections_per_client,
            running: TaskTracker::new(),
            limits: ActivityLimits {
                header_timeout: Duration::from_secs(http.header_seconds),
                min_drain_rate: http.min_drain_rate,
            },
            shutdown,
        }
    }

    /// Serves the connections of a listener by its router; stops listening when `shutdown` drains.
    async fn accept_until_drained(&self, listener: Listener, router: Router) {
        loop {
            let accepted = tokio::select! {
                biased;
                () = self.shutdown.drain.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            let Ok((stream, peer)) = accepted else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let holders = self.clients.of_connection(peer.ip()).holders(self.connections_per_client);
            let Ok(share) = self.connections.try_acquire(holders, 1) else {
                connection::count_ended("refused");
                continue;
            };
            set_options(&stream);
            let permits = ConnectionPermits {
                activity: Activity::new(self.limits),
                _share: share,
                _running: self.running.token(),
            };
            tokio::spawn(connection::serve(stream, peer, router.clone(), self.shutdown.clone(), permits));
        }
    }
}

fn address_of(listener: &Listener) -> SocketAddr {
    listener.local_addr().expect("a socket that listens has an address")
}

fn listen(setting: &str, address: SocketAddr) -> anyhow::Result<Listener> {
    Listener::bind(address).map_err(|error| anyhow::anyhow!("can't listen on {setting} {address}: {error}"))
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
