//! HTTP as a client sees it.

use std::convert::Infallible;
use std::time::Duration;

use futures_util::future::ready;
use futures_util::stream::{self, StreamExt as _};
use reqwest::header::HeaderMap;
use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::contract;

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// Header fields.
    pub headers: HeaderMap,
    /// Body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The body as JSON.
    ///
    /// # Panics
    /// It is none, or is not said to be.
    pub fn json(&self) -> Value {
        assert_eq!(self.media_type(), "application/json", "{self:?}");
        serde_json::from_slice(&self.body).expect("a JSON answer parses")
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The media type, without parameters.
    pub fn media_type(&self) -> &str {
        self.header("content-type").split(';').next().unwrap_or_default().trim()
    }

    /// One header field, empty where it is absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// All that a client could tell two answers apart by: not the time, what is left of a limit,
    /// or the request's own id.
    pub fn appearance(&self) -> (u16, HeaderMap, String) {
        let mut headers = self.headers.clone();
        for of_the_moment in ["date", "ratelimit", "x-request-id"] {
            headers.remove(of_the_moment);
        }
        (self.status, headers, self.text())
    }

    /// The JSON body of the expected status.
    ///
    /// # Panics
    /// The status is another.
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        if self.body.is_empty() { Value::Null } else { self.json() }
    }

    /// The error code of the expected status.
    ///
    /// # Panics
    /// The status is another, or there is no code.
    pub fn error(&self, status: u16) -> String {
        let body = self.expect(status);
        body["error"].as_str().expect("an error answer has a code").to_owned()
    }

    /// Asserts `{"error": "<code>"}` and nothing else, as `/v1` answers.
    ///
    /// # Panics
    /// It is something else.
    pub fn is_v1_error(&self, status: u16, code: &str) {
        assert_eq!(self.expect(status), serde_json::json!({ "error": code }));
    }

    /// Asserts `{"error": "<code>", "message": "<a sentence>"}` and nothing else, as `/api` answers.
    ///
    /// # Panics
    /// It is something else.
    pub fn is_api_error(&self, status: u16, code: &str) {
        let body = self.expect(status);
        let message = body["message"].as_str().unwrap_or_default();
        assert_eq!(body, serde_json::json!({ "error": code, "message": message }));
        assert!(message.len() > 5, "the message says what to change: {body}");
    }
}

/// A client that keeps connections and knows no proxy.
///
/// # Panics
/// None can be made.
pub fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().expect("an HTTP client can be made")
}

/// An answer whose head is there, and whose body is not read yet.
#[derive(Debug)]
pub struct Opened {
    /// Status and header fields; no body.
    pub head: Answer,
    response: reqwest::Response,
    method: Method,
    url: reqwest::Url,
    sent: HeaderMap,
}

impl Opened {
    /// Whether it is a stream of events, which ends when the server pleases.
    pub fn is_stream(&self) -> bool {
        self.head.media_type() == "text/event-stream"
    }

    /// The next octets of the body; `None` at its end.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn octets(&mut self) -> reqwest::Result<Option<Vec<u8>>> {
        Ok(self.response.chunk().await?.map(Into::into))
    }

    /// The whole answer; of a stream of events its head.
    ///
    /// # Errors
    /// The connection broke.
    ///
    /// # Panics
    /// The answer is not as the OpenAPI document says.
    pub async fn whole(self) -> reqwest::Result<Answer> {
        if self.is_stream() {
            return Ok(self.head);
        }
        let body = self.response.bytes().await?.to_vec();
        if self.head.status == StatusCode::NO_CONTENT.as_u16() {
            assert!(body.is_empty(), "204 has no body");
        }
        let answer = Answer { body, ..self.head };
        contract::check(&self.method, &self.url, &self.sent, &answer);
        Ok(answer)
    }
}

/// A request to one server.
#[derive(Debug)]
pub struct Request {
    builder: reqwest::RequestBuilder,
}

impl Request {
    /// A request without a credential.
    pub fn new(client: &reqwest::Client, method: Method, url: &str) -> Self {
        Self { builder: client.request(method, url) }
    }

    /// With a `tm_live_` token.
    #[must_use]
    pub fn live(self, token: &str) -> Self {
        Self { builder: self.builder.header("x-api-token", token) }
    }

    /// With a Bearer credential.
    #[must_use]
    pub fn bearer(self, token: &str) -> Self {
        Self { builder: self.builder.bearer_auth(token) }
    }

    /// With a header field, of any octets that one can have.
    #[must_use]
    pub fn header(self, name: &str, value: impl AsRef<[u8]>) -> Self {
        Self { builder: self.builder.header(name, value.as_ref()) }
    }

    /// Gives up after so long.
    #[must_use]
    pub fn timeout(self, after: Duration) -> Self {
        Self { builder: self.builder.timeout(after) }
    }

    /// With a JSON body.
    #[must_use]
    pub fn json(self, body: &Value) -> Self {
        Self { builder: self.builder.json(body) }
    }

    /// With a body as it is.
    #[must_use]
    pub fn body(self, media_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { builder: self.builder.header("content-type", media_type).body(body.into()) }
    }

    /// With a body that begins with `start` and never ends, of a length that nobody knows.
    #[must_use]
    pub fn endless_body(self, media_type: &str, start: impl Into<Vec<u8>>) -> Self {
        let start = stream::once(ready(Ok::<_, Infallible>(start.into())));
        let body = reqwest::Body::wrap_stream(start.chain(stream::pending()));
        Self { builder: self.builder.header("content-type", media_type).body(body) }
    }

    /// Sends it and reads the head of the answer.
    ///
    /// # Errors
    /// The connection broke.
    ///
    /// # Panics
    /// The answer is a stream of events that is not as the OpenAPI document says.
    pub async fn open(self) -> reqwest::Result<Opened> {
        let (client, request) = self.builder.build_split();
        let request = request?;
        let (method, url) = (request.method().clone(), request.url().clone());
        let sent = request.headers().clone();
        let response = client.execute(request).await?;
        let head = Answer {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            body: Vec::new(),
        };
        let opened = Opened { head, response, method, url, sent };
        if opened.is_stream() {
            contract::check(&opened.method, &opened.url, &opened.sent, &opened.head);
        }
        Ok(opened)
    }

    /// Sends it and reads the whole answer, which is to be as the document says. A stream of
    /// events is left after its head.
    ///
    /// # Errors
    /// The connection broke.
    ///
    /// # Panics
    /// The answer is not as the OpenAPI document says.
    pub async fn try_send(self) -> reqwest::Result<Answer> {
        self.open().await?.whole().await
    }

    /// Sends it and reads the whole answer.
    ///
    /// # Panics
    /// The connection broke.
    pub async fn send(self) -> Answer {
        self.try_send().await.expect("the server answers")
    }
}

/// Encodes one path segment or query value.
pub fn percent(text: &str) -> String {
    let mut encoded = String::new();
    for octet in text.bytes() {
        match octet {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'@' => {
                encoded.push(char::from(octet));
            }
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}
