//! The admin server: `/livez`, `/readyz` and `/metrics` on a port of its own.

mod connections;

use std::convert::Infallible;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse as _;
use axum::routing::get;
use metrics_exporter_prometheus::PrometheusHandle;

use self::connections::Connections;
use crate::config;
use crate::http_listener;
use crate::known_host;
use crate::listener::Listener;
use crate::liveness::Liveness;
use crate::readiness::Readiness;
use crate::role::RoleFuture;
use crate::shutdown::Shutdown;
use crate::telemetry;

/// Pause after the operating system refused a connection (no file descriptors left).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Connections that are accepted one after the other, and the pause after them. Probes and scrapes are a few a second;
/// a client that opens thousands must not keep the process from its work. Behind a full queue of silent connections a
/// probe waits for about a second.
const ACCEPTED_AT_ONCE: usize = 8;
const TURN_PAUSE: Duration = Duration::from_millis(1);

/// The admin server, bound but not serving yet.
#[derive(Debug)]
pub struct AdminServer {
    listener: Listener,
    settings: config::Admin,
    readiness: Readiness,
    metrics: PrometheusHandle,
    /// Where requests must name a known host.
    host_check: Option<Arc<config::Http>>,
}

impl AdminServer {
    /// Binds `admin.listen`.
    ///
    /// # Errors
    /// The address can't be bound.
    pub async fn bind(
        settings: &config::Admin,
        readiness: Readiness,
        metrics: PrometheusHandle,
    ) -> anyhow::Result<Self> {
        let listener = http_listener::listen(settings.listen)
            .with_context(|| format!("`admin.listen`: can't listen on {}", settings.listen))?;
        Ok(Self { listener, settings: settings.clone(), readiness, metrics, host_check: None })
    }

    /// Answers requests that name a known host only, if `http.check_host` is on.
    #[must_use]
    pub fn with_host_check(self, http: &config::Http) -> Self {
        Self { host_check: http.check_host.then(|| Arc::new(http.clone())), ..self }
    }

    /// The address that it listens on.
    ///
    /// # Errors
    /// The operating system does not return it.
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `shutdown.stop`; while draining the process is alive but not ready.
    ///
    /// # Errors
    /// None.
    pub fn run(self, shutdown: Shutdown) -> RoleFuture {
        Box::pin(self.serve(shutdown))
    }

    async fn serve(self, shutdown: Shutdown) -> anyhow::Result<()> {
        let Self { listener, settings, readiness, metrics, host_check } = self;
        let upkeep = telemetry::run_upkeep(metrics.clone(), shutdown.stop.clone());
        let drain = shutdown.drain.clone();
        let liveness = readiness.liveness().clone();
        let ready = move || {
            let response = readyz(&readiness, drain.is_cancelled());
            async move { response }
        };
        let router = Router::new()
            .route("/livez", get(move || async move { livez(&liveness) }))
            .route("/readyz", get(ready))
            .route("/metrics", get(move || async move { metrics.render() }));
        let router = match host_check {
            None => router,
            Some(http) => router.layer(from_fn(move |request: Request, next: Next| {
                let checked = known_host::check(&http, request.uri(), request.headers());
                async move {
                    match checked {
                        Ok(()) => next.run(request).await,
                        Err(foreign) => {
                            (StatusCode::MISDIRECTED_REQUEST, foreign.to_string()).into_response()
                        }
                    }
                }
            })),
        };
        tokio::select! {
            never = accept(listener, Connections::new(router, &settings)) => match never {},
            () = upkeep => Ok(()),
        }
    }
}

/// Accepts and serves connections.
async fn accept(listener: Listener, mut connections: Connections) -> Infallible {
    loop {
        for _ in 0..ACCEPTED_AT_ONCE {
            match listener.accept().await {
                Ok((stream, _peer)) => connections.serve(stream),
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
        tokio::time::sleep(TURN_PAUSE).await;
    }
}

/// A line for each task that is stuck, else `ok`.
fn livez(liveness: &Liveness) -> (StatusCode, String) {
    let lines: String = liveness.stuck().iter().map(|task| format!("{task}: stuck\n")).collect();
    if lines.is_empty() { (StatusCode::OK, "ok\n".into()) } else { (StatusCode::SERVICE_UNAVAILABLE, lines) }
}

/// A line for each component that is not ready, else `ok`.
fn readyz(readiness: &Readiness, draining: bool) -> (StatusCode, String) {
    let mut lines = String::new();
    if draining {
        lines.push_str("shutdown: draining\n");
    }
    for (component, reason) in readiness.report() {
        let _ = writeln!(lines, "{component}: {reason}");
    }
    if lines.is_empty() { (StatusCode::OK, "ok\n".into()) } else { (StatusCode::SERVICE_UNAVAILABLE, lines) }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    async fn get(address: SocketAddr, path: &str) -> String {
        let mut connection = tokio::net::TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        connection.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        connection.read_to_string(&mut response).await.unwrap();
        response
    }

    /// Starts a server on a free port of loopback.
    async fn start(
        settings: config::Admin,
        readiness: &Readiness,
        shutdown: &Shutdown,
    ) -> (SocketAddr, tokio::task::JoinHandle<anyhow::Result<()>>) {
        let settings = config::Admin { listen: ([127, 0, 0, 1], 0).into(), ..settings };
        let metrics = telemetry::metrics_handle().unwrap();
        let admin = AdminServer::bind(&settings, readiness.clone(), metrics).await.unwrap();
        let address = admin.local_addr().unwrap();
        (address, tokio::spawn(admin.run(shutdown.clone())))
    }

    /// A connection whose request has begun.
    async fn begin_request(address: SocketAddr) -> tokio::net::TcpStream {
        let mut connection = tokio::net::TcpStream::connect(address).await.unwrap();
        connection.write_all(b"GET ").await.unwrap();
        connection
    }

    #[tokio::test]
    async fn ends_the_oldest_connection_without_a_request_for_a_new_one() {
        let (readiness, shutdown) = (Readiness::default(), Shutdown::new());
        let settings = config::Admin { connections: 3, ..config::Admin::default() };
        let (address, _running) = start(settings, &readiness, &shutdown).await;
        let mut slow = Vec::new();
        for _ in 0..3 {
            slow.push(begin_request(address).await);
        }
        assert!(get(address, "/livez").await.starts_with("HTTP/1.1 200"));
        assert_eq!(slow[0].read(&mut [0; 1]).await.unwrap_or(0), 0, "the oldest is closed");
        shutdown.stop.cancel();
    }

    #[tokio::test]
    async fn refuses_a_foreign_host_where_hosts_are_checked() {
        for (check_host, expected) in [(true, "HTTP/1.1 421"), (false, "HTTP/1.1 200")] {
            let (readiness, shutdown) = (Readiness::default(), Shutdown::new());
            let settings = config::Admin { listen: ([127, 0, 0, 1], 0).into(), ..config::Admin::default() };
            let metrics = telemetry::metrics_handle().unwrap();
            let admin = AdminServer::bind(&settings, readiness, metrics).await.unwrap();
            let admin = admin.with_host_check(&config::Http { check_host, ..config::Http::default() });
            let address = admin.local_addr().unwrap();
            let _running = tokio::spawn(admin.run(shutdown.clone()));
            assert!(get(address, "/livez").await.starts_with(expected), "{check_host}");
            shutdown.stop.cancel();
        }
    }

    #[tokio::test]
    async fn ends_a_connection_without_a_request() {
        let (readiness, shutdown) = (Readiness::default(), Shutdown::new());
        let settings = config::Admin { request_seconds: 1, ..config::Admin::default() };
        let (address, _running) = start(settings, &readiness, &shutdown).await;
        let mut slow = begin_request(address).await;
        assert_eq!(slow.read(&mut [0; 1]).await.unwrap_or(0), 0);
        shutdown.stop.cancel();
    }

    #[tokio::test]
    async fn reports_components_that_are_not_ready_until_it_stops() {
        let readiness = Readiness::default();
        let shutdown = Shutdown::new();
        let (address, running) = start(config::Admin::default(), &readiness, &shutdown).await;

        assert!(get(address, "/livez").await.starts_with("HTTP/1.1 200"));
        assert!(get(address, "/readyz").await.ends_with("ok\n"));
        readiness.set_not_ready("postgres", "no answer");
        let response = get(address, "/readyz").await;
        assert!(
            response.starts_with("HTTP/1.1 503") && response.ends_with("postgres: no answer\n"),
            "{response}"
        );
        readiness.set_ready("postgres");
        metrics::counter!("admin_test_total").increment(1);
        assert!(get(address, "/metrics").await.contains("admin_test_total 1"));
        shutdown.drain.cancel();
        assert!(get(address, "/readyz").await.ends_with("shutdown: draining\n"));
        shutdown.stop.cancel();
        running.await.unwrap().unwrap();
    }
}
