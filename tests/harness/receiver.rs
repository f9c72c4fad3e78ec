//! A receiver of webhooks on loopback, over TLS, which does what a test tells it.

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
use tokio::task::JoinHandle;
use tokio::time::sleep;

pub use self::authority::{Identity, ca_file};
use self::listener::TlsListener;
use crate::wait::eventually;

/// Octets of each piece of an answer without an end.
const PIECE: usize = 64 << 10;

/// What a receiver does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reaction {
    /// Answers with a status.
    Status(u16),
    /// Answers with a status and one header field.
    StatusWithHeader(u16, &'static str, String),
    /// Answers with a status after so long.
    DelayedStatus(Duration, u16),
    /// Takes the request and never answers.
    Hang,
    /// Answers 200, and then an octet a second.
    DrippingBody,
    /// Answers 200 with a body without an end.
    EndlessBody,
    /// Answers 200 with so many octets of a body, and then nothing more.
    StalledBody(usize),
    /// Answers 200 with part of a body, and breaks the connection.
    TruncatedBody,
    /// Resets each connection as soon as it is there.
    ResetConnection,
    /// Takes connections and says nothing.
    SilentConnection,
    /// Takes connections and speaks HTTP without TLS.
    PlainHttp,
    /// Answers what comes over each connection with these octets, whatever they are.
    RawBytes(String),
}

/// A request, as it came.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    /// When all of it was there.
    pub at: Instant,
    /// Path and query.
    pub uri: Uri,
    /// Its header fields.
    pub headers: HeaderMap,
    /// Its body, as it came.
    pub body: Bytes,
    /// What was done.
    pub reaction: Reaction,
}

/// A receiver. It ends when it is dropped.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    state: Arc<Shared>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    behaviour: Mutex<Behaviour>,
    received: Mutex<Vec<ReceivedRequest>>,
    connections: AtomicUsize,
    taken: Arc<AtomicUsize>,
    piece: Bytes,
}

#[derive(Debug)]
struct Behaviour {
    /// For the next requests, in turn.
    next: VecDeque<Reaction>,
    /// For all others.
    usual: Reaction,
}

impl Receiver {
    /// One at `https://localhost`, which answers 204.
    pub async fn start() -> Self {
        Self::start_at(([127, 0, 0, 1], 0).into(), &Identity::issued_for(&["localhost"])).await
    }

    /// One at an address, with a certificate.
    ///
    /// # Panics
    /// The address can't be listened to.
    pub async fn start_at(address: SocketAddr, identity: &Identity) -> Self {
        let behaviour = Behaviour { next: VecDeque::new(), usual: Reaction::Status(204) };
        let state = Arc::new(Shared {
            behaviour: Mutex::new(behaviour),
            received: Mutex::default(),
            connections: AtomicUsize::new(0),
            taken: Arc::default(),
            piece: vec![b'x'; PIECE].into(),
        });
        let shared = Arc::clone(&state);
        let on_connection = move || {
            shared.connections.fetch_add(1, Ordering::Relaxed);
            let behaviour = lock(&shared.behaviour);
            behaviour.next.front().unwrap_or(&behaviour.usual).clone()
        };
        let listener = TlsListener::bind(address, identity, on_connection).await;
        let address = listener.address();
        let router = Router::new().fallback(answer).with_state(Arc::clone(&state));
        let task = tokio::spawn(async move {
            let _ = axum::serve(listener, router).await;
        });
        Self { address, state, task }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL by the name `localhost`.
    pub fn url(&self) -> String {
        self.url_for_host("localhost")
    }

    /// Its URL by a name.
    pub fn url_for_host(&self, name: &str) -> String {
        format!("https://{name}:{}/in", self.address.port())
    }

    /// What it does from now on, after what was told for the next requests.
    pub fn react_with(&self, reaction: Reaction) {
        lock(&self.state.behaviour).usual = reaction;
    }

    /// What it does with the next requests, in turn.
    pub fn react_next_with(&self, reactions: impl IntoIterator<Item = Reaction>) {
        lock(&self.state.behaviour).next.extend(reactions);
    }

    /// Everything that came, in order.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        lock(&self.state.received).clone()
    }

    /// How many requests came.
    pub fn request_count(&self) -> usize {
        lock(&self.state.received).len()
    }

    /// How many connections were made.
    pub fn connection_count(&self) -> usize {
        self.state.connections.load(Ordering::Relaxed)
    }

    /// How many octets of bodies without an end were taken from it.
    pub fn body_bytes_sent(&self) -> usize {
        self.state.taken.load(Ordering::Relaxed)
    }

    /// Waits until so many requests have come, and gives all.
    ///
    /// # Panics
    /// They do not.
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
    /// It is no JSON.
    pub fn event(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the body is JSON")
    }

    /// A header field.
    ///
    /// # Panics
    /// It is not there, or no text.
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).unwrap_or_else(|| panic!("no {name} in {:?}", self.headers));
        value.to_str().expect("the field is a text")
    }

    /// Whether its signatures, ours and that of Standard Webhooks, are those of a secret.
    pub fn is_signed_by(&self, secret: &str) -> bool {
        let (id, at) = (self.header("x-webhook-id"), self.header("x-webhook-timestamp"));
        let ours = mac(secret.as_bytes(), &[at.as_bytes(), b".", &self.body]);
        let hex: String = ours.iter().map(|octet| format!("{octet:02x}")).collect();
        let key = secret.strip_prefix("whsec_").and_then(|key| STANDARD.decode(key).ok());
        let key = key.expect("a secret is whsec_ and Base64");
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

async fn answer(State(shared): State<Arc<Shared>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let reaction = {
        let mut behaviour = lock(&shared.behaviour);
        behaviour.next.pop_front().unwrap_or_else(|| behaviour.usual.clone())
    };
    let received = ReceivedRequest { at: Instant::now(), uri, headers, body, reaction: reaction.clone() };
    lock(&shared.received).push(received);
    let status = |code: u16| StatusCode::from_u16(code).expect("a status");
    match reaction {
        Reaction::Status(code) => status(code).into_response(),
        Reaction::StatusWithHeader(code, name, value) => (status(code), [(name, value)]).into_response(),
        Reaction::DelayedStatus(time, code) => {
            sleep(time).await;
            status(code).into_response()
        }
        Reaction::Hang
        | Reaction::ResetConnection
        | Reaction::SilentConnection
        | Reaction::PlainHttp
        | Reaction::RawBytes(_) => std::future::pending().await,
        Reaction::DrippingBody => of_pieces(Bytes::from_static(b"x"), Duration::from_secs(1), usize::MAX),
        Reaction::EndlessBody => {
            let taken = Arc::clone(&shared.taken);
            let pieces = stream::repeat(shared.piece.clone()).map(move |piece| {
                taken.fetch_add(piece.len(), Ordering::Relaxed);
                Ok::<_, Infallible>(piece)
            });
            Response::new(Body::from_stream(pieces))
        }
        Reaction::StalledBody(octets) => {
            let body = stream::iter([Ok::<_, Infallible>(vec![b'x'; octets])]).chain(stream::pending());
            Response::new(Body::from_stream(body))
        }
        Reaction::TruncatedBody => of_pieces(shared.piece.slice(..100), Duration::ZERO, 1),
    }
}

/// A body of pieces, one after each `pause`; it breaks after `most` of them.
fn of_pieces(piece: Bytes, pause: Duration, most: usize) -> Response {
    type Piece = Result<Bytes, std::io::Error>;
    let pieces: Pin<Box<dyn stream::Stream<Item = Piece> + Send>> =
        Box::pin(stream::unfold(0, move |sent| {
            let piece = piece.clone();
            async move {
                sleep(pause).await;
                let piece = if sent < most { Ok(piece) } else { Err(std::io::Error::other("broken")) };
                Some((piece, sent + 1))
            }
        }));
    Response::new(Body::from_stream(pieces))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
