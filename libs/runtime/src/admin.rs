//! The admin server: `/livez`, `/readyz` and `/metrics` on a port of its own.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse as _;
use axum::routing::get;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use metrics_exporter_prometheus::PrometheusHandle;
use tempmail_admission::{Client, Shares};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tower::ServiceExt as _;

use crate::config;
use crate::known_host;
use crate::listener::Listener;
use crate::liveness::Liveness;
use crate::readiness::Readiness;
use crate::role::RoleFuture;
use crate::shutdown::Shutdown;
use crate::telemetry;

/// Pause after the operating system refused a connection (no file descriptors left).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Connections that a client may have.
const CONNECTIONS_OF_CLIENT: usize = 16;

/// Connections that the server ended, or did not serve.
const ENDED: &str = "tempmail_admin_connections_ended_total";

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
        let listener = Listener::bind(settings.listen)
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
            never = accept(&listener, &router, &settings) => match never {},
            () = upkeep => Ok(()),
        }
    }
}

/// Accepts and serves connections. Those of one client leave room for the probes of another one.
async fn accept(listener: &Listener, router: &Router, settings: &config::Admin) -> Infallible {
    let open = Shares::new(settings.connections);
    let mut tasks = JoinSet::new();
    loop {
        while tasks.try_join_next().is_some() {}
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let holders = Client::Address(peer.ip()).holders(CONNECTIONS_OF_CLIENT);
        let Ok(share) = open.try_acquire(holders, 1) else {
            metrics::counter!(ENDED, "reason" => "refused").increment(1);
            continue;
        };
        let served = answer(stream, router.clone(), Duration::from_secs(settings.request_seconds));
        tasks.spawn(async move {
            if !served.await {
                metrics::counter!(ENDED, "reason" => "timeout").increment(1);
            }
            drop(share);
        });
    }
}

/// Answers the one request of a connection; `false` where that takes too long.
async fn answer(stream: TcpStream, router: Router, timeout: Duration) -> bool {
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        router.clone().oneshot(request.map(Body::new))
    });
    let connection = http1::Builder::new()
        .keep_alive(false)
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service);
    // An error of the connection is the client's.
    tokio::time::timeout(timeout, connection).await.is_ok()
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
        get_over(TcpStream::connect(address).await.unwrap(), path).await
    }

    async fn get_over(mut connection: TcpStream, path: &str) -> String {
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
    async fn begin_request(address: SocketAddr) -> TcpStream {
        let mut connection = TcpStream::connect(address).await.unwrap();
        connection.write_all(b"GET ").await.unwrap();
        connection
    }

    #[tokio::test]
    async fn a_client_with_all_its_connections_is_refused_one_more_and_no_other_client_is() {
        let (readiness, shutdown) = (Readiness::default(), Shutdown::new());
        let (address, _running) = start(config::Admin::default(), &readiness, &shutdown).await;
        let mut slow = Vec::new();
        for _ in 0..CONNECTIONS_OF_CLIENT {
            slow.push(begin_request(address).await);
        }
        let mut refused = begin_request(address).await;
        assert_eq!(refused.read(&mut [0; 1]).await.unwrap_or(0), 0);
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, 2], 0).into()).unwrap();
        assert!(get_over(socket.connect(address).await.unwrap(), "/livez").await.starts_with("HTTP/1.1 200"));
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
