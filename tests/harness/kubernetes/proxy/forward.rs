//! Forwarding of requests.

use std::convert::Infallible;
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard};

use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{CONNECTION, HOST, TRANSFER_ENCODING};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::lock;
use super::request::{ApiRequest, Verb};
use super::script::{Action, ApiFault, Script, StopPoint};

/// Closes the connection without a response.
type BoxError = Box<dyn Error + Send + Sync>;
type ProxyResponse = Response<UnsyncBoxBody<Bytes, BoxError>>;

/// How watches end.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum WatchEnd {
    /// The connection breaks.
    #[default]
    Broken,
    /// Its resource version is too old, as its last event says.
    Expired,
}

/// What the connections of a proxy share.
pub(super) struct ProxyState {
    api_server: Client,
    script: Mutex<Script>,
    /// Changes when held requests are to be checked again.
    resumed: watch::Sender<()>,
    /// Changes when watches end.
    watch_end: watch::Sender<WatchEnd>,
    /// Changes when connections are closed.
    closed: watch::Sender<()>,
}

impl ProxyState {
    pub(super) fn new(api_server: Client) -> Self {
        let [resumed, closed] = [(); 2].map(|()| watch::Sender::new(()));
        Self { api_server, script: Mutex::default(), resumed, watch_end: watch::Sender::default(), closed }
    }

    pub(super) fn script(&self) -> MutexGuard<'_, Script> {
        lock(&self.script)
    }

    pub(super) fn resume(&self) {
        self.resumed.send_replace(());
    }

    pub(super) fn end_watches(&self, end: WatchEnd) {
        self.watch_end.send_replace(end);
    }
}

impl std::fmt::Debug for ProxyState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.script().fmt(f)
    }
}

/// Accepts connections. All of them are closed when this is dropped.
pub(super) async fn serve(listener: TcpListener, state: Arc<ProxyState>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        connections.spawn(connection(client, Arc::clone(&state)));
        while connections.try_join_next().is_some() {}
    }
}

async fn connection(client: TcpStream, state: Arc<ProxyState>) {
    let mut closed = state.closed.subscribe();
    let service = service_fn(|request| forward(request, &state));
    let connection = http1::Builder::new().serve_connection(TokioIo::new(client), service);
    tokio::select! {
        _ = connection => {}
        _ = closed.changed() => {}
    }
}

async fn forward(request: Request<Incoming>, state: &Arc<ProxyState>) -> Result<ProxyResponse, BoxError> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let seen = ApiRequest::new(&head.method, &head.uri, body);
    let (index, is_held) = {
        let mut script = state.script();
        script.requests.push(seen.clone());
        (script.requests.len() - 1, script.is_held_by_test(&seen))
    };
    if is_held {
        // It was sent: it reaches the API server even if the program ends meanwhile.
        tokio::spawn(carry_out(head, seen, index, Arc::clone(state))).await?
    } else {
        carry_out(head, seen, index, Arc::clone(state)).await
    }
}

/// Does with a request what is scheduled for it, else forwards it.
async fn carry_out(
    head: Parts,
    seen: ApiRequest,
    index: usize,
    state: Arc<ProxyState>,
) -> Result<ProxyResponse, BoxError> {
    let action = wait_until_admitted(&seen, &state).await;
    match action {
        Some(Action::Fail(fault)) => {
            state.script().requests[index].status = Some(fault.status().as_u16());
            let (head, status) = fault.response();
            let body = Full::new(Bytes::from(status.to_string())).map_err(from_infallible).boxed_unsync();
            return Ok(head.body(body)?);
        }
        Some(Action::Stop { point: StopPoint::BeforeWrite, call, done }) => {
            return Err(stop(call, done, &state).await);
        }
        _ => {}
    }
    let mut forwarded = Request::builder().method(head.method).uri(head.uri);
    for (name, value) in head.headers.iter().filter(|(name, _)| *name != HOST && *name != CONNECTION) {
        forwarded = forwarded.header(name, value);
    }
    let answer = state.api_server.send(forwarded.body(Body::from(seen.body))?).await?;
    // A watch that tests see as answered ends when they say so.
    let end = (seen.verb == Verb::Watch).then(|| state.watch_end.subscribe());
    state.script().requests[index].status = Some(answer.status().as_u16());
    if let Some(Action::Stop { call, done, .. }) = action {
        answer.into_body().collect().await?;
        state.script().is_paused = true;
        return Err(stop(call, done, &state).await);
    }
    let (mut head, body) = answer.into_parts();
    head.headers.remove(TRANSFER_ENCODING);
    head.headers.remove(CONNECTION);
    let body = until_ended(body, end);
    Ok(Response::from_parts(head, body))
}

/// Waits while a test holds the request, and returns what is scheduled for it.
async fn wait_until_admitted(request: &ApiRequest, state: &ProxyState) -> Option<Action> {
    let mut resumed = state.resumed.subscribe();
    loop {
        {
            let mut script = state.script();
            if !script.is_held(request) {
                let action = script.take_action(request);
                script.is_paused |=
                    matches!(action, Some(Action::Stop { point: StopPoint::BeforeWrite, .. }));
                return action;
            }
        }
        let _ = resumed.changed().await;
    }
}

/// Calls what stops the program while no request passes. The task of the connection ends with the
/// program, so it runs in another one.
async fn stop(
    call: Box<dyn FnOnce() + Send>,
    done: watch::Sender<bool>,
    state: &Arc<ProxyState>,
) -> BoxError {
    let state = Arc::clone(state);
    let stopping = tokio::spawn(async move {
        let called = tokio::task::spawn_blocking(call).await;
        state.script().is_paused = false;
        state.closed.send_replace(());
        state.resume();
        if called.is_ok() {
            done.send_replace(true);
        }
    });
    let _ = stopping.await;
    "the program was stopped".into()
}

/// A body that ends when `end` changes. The API server sends each event in one frame, so the end comes
/// between two events.
fn until_ended(body: Body, end: Option<watch::Receiver<WatchEnd>>) -> UnsyncBoxBody<Bytes, BoxError> {
    let Some(end) = end else { return body.map_err(BoxError::from).boxed_unsync() };
    let frames = stream::unfold(Some((body, end)), |watch| async move {
        let (mut body, mut end) = watch?;
        tokio::select! {
            frame = body.frame() => frame.map(|frame| (frame.map_err(BoxError::from), Some((body, end)))),
            _ = end.changed() => {
                let last = last_frame(*end.borrow());
                Some((last, None))
            }
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

fn last_frame(end: WatchEnd) -> Result<Frame<Bytes>, BoxError> {
    match end {
        WatchEnd::Broken => Err("the watch is dropped".into()),
        WatchEnd::Expired => {
            let (_, status) = ApiFault::Expired.response();
            let event = json!({ "type": "ERROR", "object": status });
            Ok(Frame::data(format!("{event}\n").into()))
        }
    }
}

fn from_infallible(error: Infallible) -> BoxError {
    match error {}
}
