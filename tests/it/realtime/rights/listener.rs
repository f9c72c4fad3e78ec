//! Clients that listen until they are refused, and go on from where they are otherwise.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::http::{self, Request, percent};
use tempmail_tests::websocket::Frame;
use tempmail_tests::{Answer, EventStream, WebSocket};
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// Time between two requests of a session.
const BETWEEN_REQUESTS: Duration = Duration::from_millis(200);

/// What is listened to, and with what.
#[derive(Debug, Clone)]
pub enum Way {
    /// Long-polls of a path, with a live token.
    Polls { path: String, token: String },
    /// A stream of events of an address, or of all that the tenant owns.
    Stream { address: Option<String>, token: String },
    /// A WebSocket, with a mailbox JWT.
    Socket { jwt: String },
    /// One request after the other, with a Pro session.
    Session { token: String },
}

/// How a client was told that it may not listen any more: status and code; of a WebSocket, whose
/// error has no status, that with which it closes.
pub type Refusal = (u16, String);

/// What a client has met.
#[derive(Debug, Default, Clone)]
pub struct Seen {
    /// Subjects, in the order in which they came.
    pub subjects: Vec<String>,
    /// Ids of the same.
    pub ids: Vec<String>,
    /// Where it is in the stream.
    pub cursor: Option<String>,
    /// Whether it listens: whatever is committed later is for it to meet.
    pub listens: bool,
    /// When what it had open ended, and what it was told then or when it came back.
    pub ended: Option<(Instant, Refusal)>,
}

impl Seen {
    fn meet(&mut self, message: &Value) {
        let text = |key: &str| message[key].as_str().expect("a summary has texts").to_owned();
        self.subjects.push(text("subject"));
        self.ids.push(text("id"));
    }
}

/// A client that listens at one process.
#[derive(Debug)]
pub struct Listener {
    client: Client,
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

impl Listener {
    /// Begins to listen, from now on or from a cursor.
    pub fn start(server: SocketAddr, way: Way, cursor: Option<String>) -> Self {
        let client = Client { server, way, http: http::client() };
        let seen = Arc::new(Mutex::new(Seen { cursor, ..Seen::default() }));
        let task = tokio::spawn({
            let (client, seen) = (client.clone(), Arc::clone(&seen));
            async move {
                let refusal = client.listen(&seen).await;
                let at = Instant::now();
                // A stream's answer has no code: it is told when it comes back.
                let refusal = match refusal {
                    Some(refusal) => refusal,
                    None => client.again(place(&seen)).await,
                };
                lock(&seen).ended = Some((at, refusal));
            }
        });
        Self { client, seen, task }
    }

    /// What it has met so far.
    ///
    /// # Panics
    /// It failed: something was not as the interface says.
    pub fn seen(&self) -> Seen {
        let seen = lock(&self.seen).clone();
        assert!(!self.task.is_finished() || seen.ended.is_some(), "{:?} failed: see above", self.client.way);
        seen
    }

    /// Comes back once more with what it has: what it is told.
    pub async fn again(&self) -> Refusal {
        self.client.again(self.seen().cursor).await
    }

    /// How it listens.
    pub fn way(&self) -> &Way {
        &self.client.way
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Debug, Clone)]
struct Client {
    server: SocketAddr,
    way: Way,
    http: reqwest::Client,
}

impl Client {
    /// Listens to the end.
    async fn listen(&self, seen: &Mutex<Seen>) -> Option<Refusal> {
        match &self.way {
            Way::Polls { path, token } => Some(self.poll(path, token, seen).await),
            Way::Stream { address, token } => {
                let request = self.stream(address.as_deref(), token, place(seen));
                follow(EventStream::open(request).await, seen).await;
                None
            }
            Way::Socket { jwt } => {
                let socket = WebSocket::authenticated(self.server, jwt).await;
                lock(seen).listens = true;
                Some(watch(socket, seen).await)
            }
            Way::Session { token } => loop {
                let answer = self.get("/pro/api/accounts").bearer(token).send().await;
                if answer.status != 200 {
                    return Some(refusal(&answer));
                }
                lock(seen).listens = true;
                sleep(BETWEEN_REQUESTS).await;
            },
        }
    }

    /// What it is told when it comes again.
    ///
    /// # Panics
    /// It is let in.
    async fn again(&self, cursor: Option<String>) -> Refusal {
        match &self.way {
            Way::Polls { path, token } => {
                refusal(&self.get(&since(path, cursor.as_deref())).live(token).send().await)
            }
            Way::Stream { address, token } => {
                let request = self.stream(address.as_deref(), token, cursor);
                refusal(&EventStream::refused(request).await)
            }
            Way::Socket { jwt } => {
                let mut socket = WebSocket::to(self.server).connect().await;
                socket.auth(jwt).await;
                watch(socket, &Mutex::default()).await
            }
            Way::Session { token } => refusal(&self.get("/pro/api/accounts").bearer(token).send().await),
        }
    }

    async fn poll(&self, path: &str, token: &str, seen: &Mutex<Seen>) -> Refusal {
        loop {
            let path = since(path, place(seen).as_deref());
            // It listens by the time that its mail comes: its first mail is committed before.
            lock(seen).listens = true;
            let answer = self.get(&path).live(token).send().await;
            let mut seen = lock(seen);
            match answer.status {
                200 => {
                    let body = answer.json();
                    let emails = body["emails"].as_array().expect("emails is a list");
                    emails.iter().rev().for_each(|email| seen.meet(email));
                    seen.cursor = body["next_since"].as_str().map(str::to_owned);
                }
                204 => seen.cursor = Some(answer.header("x-next-since").to_owned()),
                _ => return refusal(&answer),
            }
        }
    }

    fn stream(&self, address: Option<&str>, token: &str, cursor: Option<String>) -> Request {
        let path = match address {
            Some(address) => format!("/v1/sse/addr?address={}&token={token}", percent(address)),
            None => format!("/v1/sse/user?token={token}"),
        };
        let request = self.get(&path);
        match cursor {
            Some(cursor) => request.header("last-event-id", cursor),
            None => request,
        }
    }

    fn get(&self, path: &str) -> Request {
        Request::new(&self.http, Method::GET, &format!("http://{}{path}", self.server))
    }
}

/// Reads a stream to its end.
async fn follow(mut stream: EventStream, seen: &Mutex<Seen>) {
    while let Some(block) = stream.try_block().await {
        let mut seen = lock(seen);
        seen.listens = true;
        seen.cursor = Some(stream.last_event_id().to_owned());
        if let Some(data) = block.data {
            seen.meet(&serde_json::from_str(&data).expect("an event carries JSON"));
        }
    }
}

/// Reads a socket to its end: an error, and the close that goes with it.
async fn watch(mut socket: WebSocket, seen: &Mutex<Seen>) -> Refusal {
    let code = loop {
        match socket.frame().await {
            Frame::Ping => {}
            Frame::Text(text) => {
                let message: Value = serde_json::from_str(&text).expect("a message is JSON");
                match message["error"].as_str() {
                    Some(code) => {
                        assert_eq!(message, json!({ "error": code }));
                        break code.to_owned();
                    }
                    None => lock(seen).meet(&message),
                }
            }
            other => panic!("in the place of a message: {other:?}"),
        }
    };
    (socket.closed().await, code)
}

fn since(path: &str, cursor: Option<&str>) -> String {
    match cursor {
        Some(cursor) => format!("{path}?limit=50&since={cursor}"),
        None => format!("{path}?limit=50"),
    }
}

fn refusal(answer: &Answer) -> Refusal {
    (answer.status, answer.error(answer.status))
}

fn place(seen: &Mutex<Seen>) -> Option<String> {
    lock(seen).cursor.clone()
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
