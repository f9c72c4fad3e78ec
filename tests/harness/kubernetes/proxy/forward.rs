//! How requests pass a proxy.

use std::convert::Infallible;
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard};

use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{CONNECTION, HOST, TRANSFER_ENCODING};
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

use super::fault::Fault;
use super::lock;
use super::request::{ApiRequest, Verb};
use super::script::{Act, Script, When};

/// Ends the connection without an answer.
type Broken = Box<dyn Error + Send + Sync>;
type Answer = Response<UnsyncBoxBody<Bytes, Broken>>;

/// How watches end.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum End {
    /// The connection breaks off.
    #[default]
    Broken,
    /// What it would go on from is forgotten, which its last event says.
    Expired,
}

/// The way from the program to the API server.
pub(super) struct Way {
    api_server: Client,
    script: Mutex<Script>,
    /// Changes when requests that wait may look again.
    goes_on: watch::Sender<()>,
    /// Changes when watches end.
    ends_watches: watch::Sender<End>,
    /// Changes when connections are closed.
    closes: watch::Sender<()>,
}

impl Way {
    pub(super) fn to(api_server: Client) -> Self {
        let [goes_on, closes] = [(); 2].map(|()| watch::Sender::new(()));
        Self { api_server, script: Mutex::default(), goes_on, ends_watches: watch::Sender::default(), closes }
    }

    pub(super) fn script(&self) -> MutexGuard<'_, Script> {
        lock(&self.script)
    }

    pub(super) fn go_on(&self) {
        self.goes_on.send_replace(());
    }

    pub(super) fn end_watches(&self, end: End) {
        self.ends_watches.send_replace(end);
    }
}

impl std::fmt::Debug for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.script().fmt(f)
    }
}

/// Takes connections. All of them are closed when this is dropped.
pub(super) async fn serve(listener: TcpListener, way: Arc<Way>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        connections.spawn(connection(client, Arc::clone(&way)));
        while connections.try_join_next().is_some() {}
    }
}

async fn connection(client: TcpStream, way: Arc<Way>) {
    let mut closes = way.closes.subscribe();
    let service = service_fn(|request| pass(request, &way));
    let connection = http1::Builder::new().serve_connection(TokioIo::new(client), service);
    tokio::select! {
        _ = connection => {}
        _ = closes.changed() => {}
    }
}

async fn pass(request: Request<Incoming>, way: &Arc<Way>) -> Result<Answer, Broken> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let seen = ApiRequest::new(&head.method, &head.uri, body.clone());
    let index = {
        let mut script = way.script();
        script.requests.push(seen.clone());
        script.requests.len() - 1
    };
    let act = admit(&seen, way).await;
    match act {
        Some(Act::Fail(fault)) => {
            way.script().requests[index].status = Some(fault.status().as_u16());
            let (head, status) = fault.answer();
            let body = Full::new(Bytes::from(status.to_string())).map_err(never).boxed_unsync();
            return Ok(head.body(body)?);
        }
        Some(Act::Stop { when: When::Before, call, tell }) => return Err(stop(call, tell, way).await),
        _ => {}
    }
    let mut forwarded = Request::builder().method(head.method).uri(head.uri);
    for (name, value) in head.headers.iter().filter(|(name, _)| *name != HOST && *name != CONNECTION) {
        forwarded = forwarded.header(name, value);
    }
    let answer = way.api_server.send(forwarded.body(Body::from(body))?).await?;
    way.script().requests[index].status = Some(answer.status().as_u16());
    if let Some(Act::Stop { call, tell, .. }) = act {
        answer.into_body().collect().await?;
        way.script().stands_still = true;
        return Err(stop(call, tell, way).await);
    }
    let (mut head, body) = answer.into_parts();
    head.headers.remove(TRANSFER_ENCODING);
    head.headers.remove(CONNECTION);
    let ends = (seen.verb == Verb::Watch).then(|| way.ends_watches.subscribe());
    let body = until_ended(body, ends);
    Ok(Response::from_parts(head, body))
}

/// Waits while a test holds the request, and returns what it says to happen to it.
async fn admit(request: &ApiRequest, way: &Way) -> Option<Act> {
    let mut goes_on = way.goes_on.subscribe();
    loop {
        {
            let mut script = way.script();
            if !script.keeps(request) {
                let act = script.act(request);
                script.stands_still |= matches!(act, Some(Act::Stop { when: When::Before, .. }));
                return act;
            }
        }
        let _ = goes_on.changed().await;
    }
}

/// Lets the test kill the program while no request passes. In a task of its own: the program's
/// connection ends meanwhile, and with it what serves that.
async fn stop(call: Box<dyn FnOnce() + Send>, tell: watch::Sender<bool>, way: &Arc<Way>) -> Broken {
    let way = Arc::clone(way);
    let stopping = tokio::spawn(async move {
        let called = tokio::task::spawn_blocking(call).await;
        way.script().stands_still = false;
        way.closes.send_replace(());
        way.go_on();
        if called.is_ok() {
            tell.send_replace(true);
        }
    });
    let _ = stopping.await;
    "the program is dead".into()
}

/// A body that ends when `ends` changes. The API server sends each event as a whole, so what comes last
/// comes between two.
fn until_ended(body: Body, ends: Option<watch::Receiver<End>>) -> UnsyncBoxBody<Bytes, Broken> {
    let Some(ends) = ends else { return body.map_err(Broken::from).boxed_unsync() };
    let frames = stream::unfold(Some((body, ends)), |state| async move {
        let (mut body, mut ends) = state?;
        tokio::select! {
            frame = body.frame() => frame.map(|frame| (frame.map_err(Broken::from), Some((body, ends)))),
            _ = ends.changed() => {
                let end = *ends.borrow();
                Some((last_frame(end), None))
            }
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

fn last_frame(end: End) -> Result<Frame<Bytes>, Broken> {
    match end {
        End::Broken => Err("the watch is dropped".into()),
        End::Expired => {
            let (_, status) = Fault::Expired.answer();
            let event = json!({ "type": "ERROR", "object": status });
            Ok(Frame::data(format!("{event}\n").into()))
        }
    }
}

fn never(error: Infallible) -> Broken {
    match error {}
}
