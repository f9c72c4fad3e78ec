//! A webhook receiver on loopback, over TLS, whose reactions a test sets.

mod authority;
mod listener;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{StreamExt as _, stream};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

pub use self::authority::{Identity, ca_file};
pub use self::listener::TlsListener;
use crate::wait::eventually;

/// Bytes of each chunk of an endless body.
const CHUNK: usize = 64 << 10;

/// How a receiver reacts to a connection or a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reaction {
    /// Responds with a status.
    Status(u16),
    /// Responds with a status and one header field.
    StatusWithHeader(u16, &'static str, String),
    /// Responds with a status after a delay.
    DelayedStatus(Duration, u16),
    /// Responds with a status once the test calls [`Receiver::release_held`].
    HeldStatus(u16),
    /// Reads the request and never responds.
    Hang,
    /// Responds with 200, and then one byte a second.
    DrippingBody,
    /// Responds with 200 and a body that never ends.
    EndlessBody,
    /// Responds with 200 and this many bytes of a body, and then stalls.
    StalledBody(usize),
    /// Responds with 200 and part of a body, and closes the connection.
    TruncatedBody,
    /// Reads the request and closes the connection without a response.
    Disconnect,
    /// Resets each connection when it is accepted.
    ResetConnection,
    /// Accepts connections and sends nothing.
    SilentConnection,
    /// Accepts connections and speaks HTTP without TLS.
    PlainHttp,
    /// Responds to the first bytes of each connection with these bytes.
    RawBytes(String),
    /// Does the same and closes the connection, without the `close_notify` of TLS.
    RawBytesAndEnd(String),
}

/// A request that was received.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    /// When it was complete.
    pub at: Instant,
    /// Path and query.
    pub uri: Uri,
    /// Its header fields.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
    /// How the receiver reacted.
    pub reaction: Reaction,
}

/// A webhook receiver, until it is dropped.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    state: Arc<ReceiverState>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct ReceiverState {
    reactions: Mutex<Reactions>,
    requests: Mutex<Vec<ReceivedRequest>>,
    connections: AtomicUsize,
    body_bytes_sent: Arc<AtomicUsize>,
    chunk: Bytes,
    /// How often held requests were released.
    released: watch::Sender<usize>,
}

#[derive(Debug)]
struct Reactions {
    /// To the next requests, in turn.
    queued: VecDeque<Reaction>,
    /// To requests whose body has this text, before all others.
    by_text: Option<(String, Reaction)>,
    /// To all others.
    default: Reaction,
}

impl Receiver {
    /// A receiver at `https://localhost`, which responds with 204.
    pub async fn start() -> Self {
        Self::start_at(([127, 0, 0, 1], 0).into(), &Identity::issued_for(&["localhost"])).await
    }

    /// A receiver at an address, with a certificate.
    ///
    /// # Panics
    /// The address is in use.
    pub async fn start_at(address: SocketAddr, identity: &Identity) -> Self {
        let reactions = Reactions { queued: VecDeque::new(), by_text: None, default: Reaction::Status(204) };
        let state = Arc::new(ReceiverState {
            reactions: Mutex::new(reactions),
            requests: Mutex::default(),
            connections: AtomicUsize::new(0),
            body_bytes_sent: Arc::default(),
            released: watch::Sender::default(),
            chunk: vec![b'x'; CHUNK].into(),
        });
        let shared = Arc::clone(&state);
        let on_connection = move || {
            shared.connections.fetch_add(1, Ordering::Relaxed);
            let reactions = lock(&shared.reactions);
            reactions.queued.front().unwrap_or(&reactions.default).clone()
        };
        let listener = TlsListener::bind(address, identity, on_connection).await;
        let address = listener.address();
        let router = Router::new().fallback(respond).with_state(Arc::clone(&state));
        let task = tokio::spawn(async move {
            let _ = axum::serve(listener, router).await;
        });
        Self { address, state, task }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL with the host name `localhost`.
    pub fn url(&self) -> String {
        self.url_for_host("localhost")
    }

    /// Its URL with another host name.
    pub fn url_for_host(&self, name: &str) -> String {
        format!("https://{name}:{}/in", self.address.port())
    }

    /// Sets how it reacts to requests for which no reaction is queued.
    pub fn react_with(&self, reaction: Reaction) {
        lock(&self.state.reactions).default = reaction;
    }

    /// Sets how it reacts to requests whose body has this text.
    pub fn react_to_text_with(&self, text: &str, reaction: Reaction) {
        lock(&self.state.reactions).by_text = Some((text.to_owned(), reaction));
    }

    /// Queues how it reacts to the next requests, in turn.
    pub fn react_next_with(&self, reactions: impl IntoIterator<Item = Reaction>) {
        lock(&self.state.reactions).queued.extend(reactions);
    }

    /// Lets it respond to the requests that it holds now ([`Reaction::HeldStatus`]).
    pub fn release_held(&self) {
        self.state.released.send_modify(|released| *released += 1);
    }

    /// The requests so far, in order.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        lock(&self.state.requests).clone()
    }

    /// The number of requests so far.
    pub fn request_count(&self) -> usize {
        lock(&self.state.requests).len()
    }

    /// The number of connections so far.
    pub fn connection_count(&self) -> usize {
        self.state.connections.load(Ordering::Relaxed)
    }

    /// Bytes of endless bodies that clients have read, or that are on their way.
    pub fn body_bytes_sent(&self) -> usize {
        self.state.body_bytes_sent.load(Ordering::Relaxed)
    }

    /// Waits for this number of requests, and returns all of them.
    ///
    /// # Panics
    /// They do not come.
    pub async fn wait_for_requests(&self, count: usize) -> Vec<ReceivedRequest> {
        eventually(&format!("{count} requests come"), || async {
            (self.request_count() >= count).then_some(())
        })
        .await;
        self.requests()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ReceivedRequest {
    /// Its body.
    ///
    /// # Panics
    /// It is not JSON.
    pub fn event(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the body is JSON")
    }

    /// A header field.
    ///
    /// # Panics
    /// It is missing, or not text.
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).unwrap_or_else(|| panic!("no {name} in {:?}", self.headers));
        value.to_str().expect("the field is text")
    }

    /// Whether both of its signatures, our own and that of Standard Webhooks, were made with a secret.
    pub fn is_signed_by(&self, secret: &str) -> bool {
        let (id, at) = (self.header("x-webhook-id"), self.header("x-webhook-timestamp"));
        let own = mac(secret.as_bytes(), &[at.as_bytes(), b".", &self.body]);
        let hex: String = own.iter().map(|byte| format!("{byte:02x}")).collect();
        let key = secret.strip_prefix("whsec_").and_then(|key| STANDARD.decode(key).ok());
        let key = key.expect("a secret is `whsec_` and Base64");
        let standard = mac(&key, &[id.as_bytes(), b".", at.as_bytes(), b".", &self.body]);
        self.header("x-webhook-signature") == format!("sha256={hex}")
            && self.header("webhook-signature") == format!("v1,{}", STANDARD.encode(standard))
            && (self.header("webhook-id"), self.header("webhook-timestamp")) == (id, at)
    }
}

fn mac(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes every key");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().to_vec()
}

async fn respond(
    State(shared): State<Arc<ReceiverState>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    // Before the reaction is chosen: a release that follows then includes this request.
    let mut released = shared.released.subscribe();
    let reaction = {
        let mut reactions = lock(&shared.reactions);
        let has = |text: &str| body.windows(text.len()).any(|bytes| bytes == text.as_bytes());
        match &reactions.by_text {
            Some((text, reaction)) if has(text) => reaction.clone(),
            _ => reactions.queued.pop_front().unwrap_or_else(|| reactions.default.clone()),
        }
    };
    let request = ReceivedRequest { at: Instant::now(), uri, headers, body, reaction: reaction.clone() };
    lock(&shared.requests).push(request);
    let status = |code: u16| StatusCode::from_u16(code).expect("a status");
    match reaction {
        Reaction::Status(code) => status(code).into_response(),
        Reaction::StatusWithHeader(code, name, value) => (status(code), [(name, value)]).into_response(),
        Reaction::DelayedStatus(delay, code) => {
            sleep(delay).await;
            status(code).into_response()
        }
        Reaction::HeldStatus(code) => {
            released.changed().await.expect("the receiver runs");
            status(code).into_response()
        }
        Reaction::Hang
        | Reaction::ResetConnection
        | Reaction::SilentConnection
        | Reaction::PlainHttp
        | Reaction::RawBytes(_)
        | Reaction::RawBytesAndEnd(_) => std::future::pending().await,
        Reaction::DrippingBody => {
            chunked_response(Bytes::from_static(b"x"), Duration::from_secs(1), usize::MAX)
        }
        Reaction::EndlessBody => {
            let sent = Arc::clone(&shared.body_bytes_sent);
            let chunks = stream::repeat(shared.chunk.clone()).map(move |chunk| {
                sent.fetch_add(chunk.len(), Ordering::Relaxed);
                Ok::<_, Infallible>(chunk)
            });
            Response::new(Body::from_stream(chunks))
        }
        Reaction::StalledBody(length) => {
            let body = stream::iter([Ok::<_, Infallible>(vec![b'x'; length])]).chain(stream::pending());
            Response::new(Body::from_stream(body))
        }
        // The task of the connection, or of the stream, ends with it.
        Reaction::Disconnect => std::panic::resume_unwind(Box::new("the receiver disconnects")),
        Reaction::TruncatedBody => chunked_response(shared.chunk.slice(..100), Duration::ZERO, 1),
    }
}

/// A response whose body sends a chunk after each `pause`, and fails after `max` of them.
fn chunked_response(chunk: Bytes, pause: Duration, max: usize) -> Response {
    type ChunkStream = dyn stream::Stream<Item = Result<Bytes, std::io::Error>> + Send;
    let chunks: Pin<Box<ChunkStream>> = Box::pin(stream::unfold(0, move |sent| {
        let chunk = chunk.clone();
        async move {
            sleep(pause).await;
            let chunk = if sent < max { Ok(chunk) } else { Err(std::io::Error::other("broken")) };
            Some((chunk, sent + 1))
        }
    }));
    Response::new(Body::from_stream(chunks))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
