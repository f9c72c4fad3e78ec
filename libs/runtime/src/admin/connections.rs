//! The connections of the admin port: a bounded number, one request each, within a bounded time. The port holds a
//! bounded part of the process' open files, and a client that says nothing makes way for a probe.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::{AbortHandle, JoinSet};
use tower::ServiceExt as _;

use crate::config;

/// Connections that the server ended, or did not serve.
const ENDED: &str = "tempmail_admin_connections_ended_total";

/// The open connections; dropping it ends them.
pub(super) struct Connections {
    router: Router,
    max: usize,
    timeout: Duration,
    tasks: JoinSet<()>,
    /// The oldest first.
    open: VecDeque<OpenConnection>,
}

struct OpenConnection {
    task: AbortHandle,
    /// Whether its request has arrived.
    answering: Arc<AtomicBool>,
}

impl Connections {
    pub(super) fn new(router: Router, settings: &config::Admin) -> Self {
        Self {
            router,
            max: settings.connections,
            timeout: Duration::from_secs(settings.request_seconds),
            tasks: JoinSet::new(),
            open: VecDeque::new(),
        }
    }

    /// Serves a connection in the background. If there are too many, the oldest that has sent no request ends for it;
    /// if all of them are being answered, it is not served.
    pub(super) fn serve(&mut self, stream: TcpStream) {
        while self.tasks.try_join_next().is_some() {}
        self.open.retain(|connection| !connection.task.is_finished());
        if self.open.len() >= self.max {
            let silent = self.open.iter().position(|open| !open.answering.load(Ordering::Relaxed));
            let Some(replaced) = silent.and_then(|at| self.open.remove(at)) else {
                metrics::counter!(ENDED, "reason" => "refused").increment(1);
                return;
            };
            replaced.task.abort();
            metrics::counter!(ENDED, "reason" => "replaced").increment(1);
        }
        let answering = Arc::new(AtomicBool::new(false));
        let answer = answer(stream, self.router.clone(), Arc::clone(&answering), self.timeout);
        let task = self.tasks.spawn(answer);
        self.open.push_back(OpenConnection { task, answering });
    }
}

/// Answers one request.
async fn answer(stream: TcpStream, router: Router, answering: Arc<AtomicBool>, timeout: Duration) {
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        answering.store(true, Ordering::Relaxed);
        router.clone().oneshot(request.map(Body::new))
    });
    let connection = http1::Builder::new()
        .keep_alive(false)
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service);
    // An error of the connection is the client's.
    if tokio::time::timeout(timeout, connection).await.is_err() {
        metrics::counter!(ENDED, "reason" => "timeout").increment(1);
    }
}
