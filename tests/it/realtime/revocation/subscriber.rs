//! Clients that read until they are rejected, and record what they received.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::http::{self, Request, percent};
use tempmail_tests::websocket::Frame;
use tempmail_tests::{EventStream, Response, WebSocket};
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// Time between two requests of a Pro session.
const REQUEST_INTERVAL: Duration = Duration::from_millis(200);

/// How a subscriber reads, what, and with which credential.
#[derive(Debug, Clone)]
pub enum Transport {
    /// Long-polls of a path, with a live token.
    LongPoll { path: String, token: String },
    /// `POST /v1/wait` with this body and a cursor, with a live token.
    MailWait { body: Value, token: String },
    /// An event stream of an address, or of everything that the tenant owns.
    Sse { address: Option<String>, token: String },
    /// A WebSocket, with a mailbox JWT.
    WebSocket { jwt: String },
    /// Repeated requests with a Pro session.
    ProSession { token: String },
}

/// A rejection: status and error code; over a WebSocket the close code instead of the status.
pub type Rejection = (u16, String);

/// What a subscriber has received.
#[derive(Debug, Default, Clone)]
pub struct Received {
    /// Subjects, in order.
    pub subjects: Vec<String>,
    /// Message ids, in the same order.
    pub ids: Vec<String>,
    /// Its cursor.
    pub cursor: Option<String>,
    /// Whether it receives whatever is committed from now on.
    pub is_ready: bool,
    /// When its connection ended, and its rejection then or on the reconnect.
    pub ended: Option<(Instant, Rejection)>,
}

impl Received {
    fn record(&mut self, message: &Value) {
        let text = |key: &str| message[key].as_str().expect("a summary has texts").to_owned();
        self.subjects.push(text("subject"));
        self.ids.push(text("id"));
    }
}

/// A client of one process.
#[derive(Debug)]
pub struct Subscriber {
    client: SubscriberClient,
    received: Arc<Mutex<Received>>,
    task: JoinHandle<()>,
}

impl Subscriber {
    /// Starts to read, from now on or from a cursor.
    pub fn start(server: SocketAddr, transport: Transport, cursor: Option<String>) -> Self {
        let client = SubscriberClient { server, transport, http: http::client() };
        let received = Arc::new(Mutex::new(Received { cursor, ..Received::default() }));
        let task = tokio::spawn({
            let (client, received) = (client.clone(), Arc::clone(&received));
            async move {
                let rejection = client.read(&received).await;
                let at = Instant::now();
                // The end of an event stream has no code: the reconnect has.
                let rejection = match rejection {
                    Some(rejection) => rejection,
                    None => client.reconnect(cursor_of(&received)).await,
                };
                lock(&received).ended = Some((at, rejection));
            }
        });
        Self { client, received, task }
    }

    /// What it received so far.
    ///
    /// # Panics
    /// It failed: something was not as the interface says.
    pub fn received(&self) -> Received {
        let received = lock(&self.received).clone();
        assert!(
            !self.task.is_finished() || received.ended.is_some(),
            "{:?} failed, see above",
            self.client.transport
        );
        received
    }

    /// Reconnects with its cursor, and returns the rejection.
    pub async fn reconnect(&self) -> Rejection {
        self.client.reconnect(self.received().cursor).await
    }

    /// How it reads.
    pub fn transport(&self) -> &Transport {
        &self.client.transport
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Debug, Clone)]
struct SubscriberClient {
    server: SocketAddr,
    transport: Transport,
    http: reqwest::Client,
}

impl SubscriberClient {
    /// Reads until the end.
    async fn read(&self, received: &Mutex<Received>) -> Option<Rejection> {
        match &self.transport {
            Transport::LongPoll { path, token } => Some(self.poll(path, token, received).await),
            Transport::MailWait { body, token } => Some(self.wait(body, token, received).await),
            Transport::Sse { address, token } => {
                let opened = self.open_stream(address.as_deref(), token, cursor_of(received)).await;
                read_stream(opened.expect("the stream is opened"), received).await;
                None
            }
            Transport::WebSocket { jwt } => {
                let (socket, first) = self.open_socket(jwt).await;
                assert_eq!(first, json!({ "type": "auth_ok" }));
                lock(received).is_ready = true;
                Some(read_socket(socket, received).await)
            }
            Transport::ProSession { token } => loop {
                let request = self.get("/pro/api/accounts").bearer(token);
                let response = request.send_until_available().await;
                if response.status != 200 {
                    return Some(rejection(&response));
                }
                lock(received).is_ready = true;
                sleep(REQUEST_INTERVAL).await;
            },
        }
    }

    /// The rejection of a new connection.
    ///
    /// # Panics
    /// It is accepted.
    async fn reconnect(&self, cursor: Option<String>) -> Rejection {
        match &self.transport {
            Transport::LongPoll { path, token } => {
                let request = self.get(&with_cursor(path, cursor.as_deref())).live(token);
                rejection(&request.send_until_available().await)
            }
            Transport::MailWait { body, token } => {
                rejection(&self.mail_wait(body, token, cursor.as_deref()).send_until_available().await)
            }
            Transport::Sse { address, token } => {
                let opened = self.open_stream(address.as_deref(), token, cursor).await;
                rejection(&opened.expect_err("the stream is rejected"))
            }
            Transport::WebSocket { jwt } => {
                let (mut socket, first) = self.open_socket(jwt).await;
                let code = first["error"].as_str().expect("the socket is rejected").to_owned();
                assert_eq!(first, json!({ "error": code }));
                (socket.closed().await, code)
            }
            Transport::ProSession { token } => {
                rejection(&self.get("/pro/api/accounts").bearer(token).send_until_available().await)
            }
        }
    }

    /// The answer to a request for a stream, which is repeated while it is 503: so many clients at once may
    /// wait too long for a connection to Postgres.
    async fn open_stream(
        &self,
        address: Option<&str>,
        token: &str,
        cursor: Option<String>,
    ) -> Result<EventStream, Response> {
        loop {
            let request = self.stream(address, token, cursor.clone());
            match EventStream::try_open(request).await.expect("the server answers") {
                Err(response) if response.status == 503 => {}
                opened => return opened,
            }
        }
    }

    /// A WebSocket and its first message; as [`Self::open_stream`], and if the client was too late on a busy
    /// machine.
    async fn open_socket(&self, jwt: &str) -> (WebSocket, Value) {
        loop {
            let mut socket = WebSocket::to(self.server).connect().await;
            socket.auth(jwt).await;
            let first = socket.next_json().await;
            match first["error"].as_str() {
                Some("unavailable" | "invalid_auth_message") => {}
                _ => return (socket, first),
            }
        }
    }

    async fn poll(&self, path: &str, token: &str, received: &Mutex<Received>) -> Rejection {
        loop {
            let path = with_cursor(path, cursor_of(received).as_deref());
            // Set before the request: mail from before it is returned at once.
            lock(received).is_ready = true;
            let response = self.get(&path).live(token).send_until_available().await;
            let mut received = lock(received);
            match response.status {
                200 => {
                    let body = response.json();
                    let emails = body["emails"].as_array().expect("emails is a list");
                    emails.iter().rev().for_each(|email| received.record(email));
                    received.cursor = body["next_since"].as_str().map(str::to_owned);
                }
                204 => received.cursor = Some(response.header("x-next-since").to_owned()),
                _ => return rejection(&response),
            }
        }
    }

    async fn wait(&self, body: &Value, token: &str, received: &Mutex<Received>) -> Rejection {
        loop {
            // As for a long-poll.
            lock(received).is_ready = true;
            let request = self.mail_wait(body, token, cursor_of(received).as_deref());
            let response = request.send_until_available().await;
            let mut received = lock(received);
            match response.status {
                200 => {
                    let found = response.json();
                    received.record(&found["email"]);
                    received.cursor = found["next_since"].as_str().map(str::to_owned);
                }
                204 => received.cursor = Some(response.header("x-next-since").to_owned()),
                _ => return rejection(&response),
            }
        }
    }

    fn mail_wait(&self, body: &Value, token: &str, cursor: Option<&str>) -> Request {
        let mut body = body.clone();
        // Without a cursor all mail is new.
        body["since"] = json!(cursor.unwrap_or("0"));
        let url = format!("http://{}/v1/wait", self.server);
        Request::new(&self.http, Method::POST, &url).live(token).json(&body)
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

/// Reads an event stream until its end.
async fn read_stream(mut stream: EventStream, received: &Mutex<Received>) {
    while let Some(block) = stream.try_block().await {
        let mut received = lock(received);
        received.is_ready = true;
        received.cursor = Some(stream.last_event_id().to_owned());
        if let Some(data) = block.data {
            received.record(&serde_json::from_str(&data).expect("an event carries JSON"));
        }
    }
}

/// Reads a WebSocket until its end: an error, and its close.
async fn read_socket(mut socket: WebSocket, received: &Mutex<Received>) -> Rejection {
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
                    None => lock(received).record(&message),
                }
            }
            other => panic!("expected a message, got {other:?}"),
        }
    };
    (socket.closed().await, code)
}

fn with_cursor(path: &str, cursor: Option<&str>) -> String {
    match cursor {
        Some(cursor) => format!("{path}?limit=50&since={cursor}"),
        None => format!("{path}?limit=50"),
    }
}

fn rejection(response: &Response) -> Rejection {
    (response.status, response.error(response.status))
}

fn cursor_of(received: &Mutex<Received>) -> Option<String> {
    lock(received).cursor.clone()
}

fn lock(received: &Mutex<Received>) -> MutexGuard<'_, Received> {
    received.lock().unwrap_or_else(PoisonError::into_inner)
}
