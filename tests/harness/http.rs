//! An HTTP client. Every response of tempmail is validated against the OpenAPI document.

use std::convert::Infallible;
use std::sync::LazyLock;
use std::time::Duration;

use futures_util::future::ready;
use futures_util::stream::{self, StreamExt as _};
use reqwest::header::HeaderMap;
use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::contract;

/// A response with its body.
#[derive(Debug, Clone)]
pub struct Response {
    /// Status code.
    pub status: u16,
    /// Header fields.
    pub headers: HeaderMap,
    /// Body.
    pub body: Vec<u8>,
}

impl Response {
    /// The body as JSON.
    ///
    /// # Panics
    /// The media type is another, or the body is not JSON.
    pub fn json(&self) -> Value {
        assert_eq!(self.media_type(), "application/json", "{self:?}");
        serde_json::from_slice(&self.body).expect("a JSON body parses")
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The media type, without parameters.
    pub fn media_type(&self) -> &str {
        self.header("content-type").split(';').next().unwrap_or_default().trim()
    }

    /// A header field; empty if it is absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Everything by which a client could distinguish two responses: all but time, rate limit and request id.
    pub fn appearance(&self) -> (u16, HeaderMap, String) {
        let mut headers = self.headers.clone();
        for varying in ["date", "ratelimit", "x-request-id"] {
            headers.remove(varying);
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
    /// The status is another, or there is no error code.
    pub fn error(&self, status: u16) -> String {
        let body = self.expect(status);
        body["error"].as_str().expect("an error has a code").to_owned()
    }

    /// Asserts an error of `/v1`: `{"error": "<code>"}` and no other field.
    ///
    /// # Panics
    /// The response is another.
    pub fn assert_v1_error(&self, status: u16, code: &str) {
        assert_eq!(self.expect(status), serde_json::json!({ "error": code }));
    }

    /// Asserts an error of `/api` and `/pro/api`: `{"error": "<code>", "message": "<a sentence>"}`.
    ///
    /// # Panics
    /// The response is another.
    pub fn assert_api_error(&self, status: u16, code: &str) {
        let body = self.expect(status);
        let message = body["message"].as_str().unwrap_or_default();
        assert_eq!(body, serde_json::json!({ "error": code, "message": message }));
        assert!(message.len() > 5, "the message says what to change: {body}");
    }
}

/// Splits the responses to concurrent requests into those that were served and those above a rate limit. Those of a
/// busy server (503) are left out.
///
/// # Panics
/// None is served, none is above the limit, or one does not report the limit in its header fields.
pub fn split_by_rate_limit(responses: &[Response]) -> (Vec<&Response>, Vec<&Response>) {
    let answered = responses.iter().filter(|response| response.status != 503);
    let (limited, served): (Vec<_>, Vec<_>) = answered.partition(|response| response.status == 429);
    assert!(
        !served.is_empty() && !limited.is_empty(),
        "{} served, {} above the limit",
        served.len(),
        limited.len()
    );
    for response in &limited {
        assert_eq!(response.error(429), "rate_limit_exceeded");
        let seconds = response.header("retry-after").parse::<u64>().expect("Retry-After is a number");
        assert!(seconds >= 1, "{seconds}");
    }
    for response in served.iter().chain(&limited) {
        assert!(!response.header("ratelimit").is_empty(), "{response:?}");
        assert!(!response.header("ratelimit-policy").is_empty(), "{response:?}");
    }
    (served, limited)
}

/// A client with a connection pool and without a proxy.
///
/// # Panics
/// It cannot be built.
pub fn client() -> reqwest::Client {
    client_builder().build().expect("an HTTP client can be built")
}

/// A client that makes a connection for each request, so that runtimes can share it. To build one takes longer than many
/// requests.
///
/// # Panics
/// It cannot be built.
pub fn client_without_pool() -> &'static reqwest::Client {
    static CLIENT: LazyLock<reqwest::Client> = LazyLock::new(|| {
        client_builder().pool_max_idle_per_host(0).build().expect("an HTTP client can be built")
    });
    &CLIENT
}

fn client_builder() -> reqwest::ClientBuilder {
    reqwest::Client::builder().no_proxy()
}

/// A response whose body is not read yet.
#[derive(Debug)]
pub struct OpenResponse {
    /// Status and header fields; no body.
    pub head: Response,
    response: reqwest::Response,
    method: Method,
    url: reqwest::Url,
    sent: HeaderMap,
}

impl OpenResponse {
    /// Whether it is an event stream, whose body has no end.
    pub fn is_event_stream(&self) -> bool {
        self.head.media_type() == "text/event-stream"
    }

    /// The next chunk of the body; `None` at its end.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn next_chunk(&mut self) -> reqwest::Result<Option<Vec<u8>>> {
        Ok(self.response.chunk().await?.map(Into::into))
    }

    /// Reads the body; that of an event stream stays empty.
    ///
    /// # Errors
    /// The connection broke.
    ///
    /// # Panics
    /// The response is not as the OpenAPI document says.
    pub async fn read_body(self) -> reqwest::Result<Response> {
        if self.is_event_stream() {
            return Ok(self.head);
        }
        let body = self.response.bytes().await?.to_vec();
        if self.head.status == StatusCode::NO_CONTENT.as_u16() {
            assert!(body.is_empty(), "204 has no body");
        }
        let response = Response { body, ..self.head };
        contract::check(&self.method, &self.url, &self.sent, &response);
        Ok(response)
    }
}

/// A request.
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

    /// With HTTP Basic.
    #[must_use]
    pub fn basic(self, user: &str, password: &str) -> Self {
        Self { builder: self.builder.basic_auth(user, Some(password)) }
    }

    /// With a header field, of any bytes that are allowed in one.
    #[must_use]
    pub fn header(self, name: &str, value: impl AsRef<[u8]>) -> Self {
        Self { builder: self.builder.header(name, value.as_ref()) }
    }

    /// With a timeout for the whole response.
    #[must_use]
    pub fn timeout(self, after: Duration) -> Self {
        Self { builder: self.builder.timeout(after) }
    }

    /// With a JSON body.
    #[must_use]
    pub fn json(self, body: &Value) -> Self {
        Self { builder: self.builder.json(body) }
    }

    /// With a raw body.
    #[must_use]
    pub fn body(self, media_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { builder: self.builder.header("content-type", media_type).body(body.into()) }
    }

    /// With a body that begins with `start` and never ends, without a `Content-Length`.
    #[must_use]
    pub fn endless_body(self, media_type: &str, start: impl Into<Vec<u8>>) -> Self {
        let start = stream::once(ready(Ok::<_, Infallible>(start.into())));
        let body = reqwest::Body::wrap_stream(start.chain(stream::pending()));
        Self { builder: self.builder.header("content-type", media_type).body(body) }
    }

    /// Sends the request and reads the head of the response.
    ///
    /// # Errors
    /// The connection broke.
    ///
    /// # Panics
    /// The response is an event stream that is not as the OpenAPI document says.
    pub async fn open(self) -> reqwest::Result<OpenResponse> {
        let (client, request) = self.builder.build_split();
        let request = request?;
        let (method, url) = (request.method().clone(), request.url().clone());
        let sent = request.headers().clone();
        let response = client.execute(request).await?;
        let head = Response {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            body: Vec::new(),
        };
        let opened = OpenResponse { head, response, method, url, sent };
        if opened.is_event_stream() {
            contract::check(&opened.method, &opened.url, &opened.sent, &opened.head);
        }
        Ok(opened)
    }

    /// Sends the request and reads the response; of an event stream its head.
    ///
    /// # Errors
    /// The connection broke.
    ///
    /// # Panics
    /// The response is not as the OpenAPI document says.
    pub async fn try_send(self) -> reqwest::Result<Response> {
        self.open().await?.read_body().await
    }

    /// As [`Self::try_send`].
    ///
    /// # Panics
    /// The connection broke, or the response is not as the OpenAPI document says.
    pub async fn send(self) -> Response {
        self.try_send().await.expect("the server answers")
    }

    /// As [`Self::send`], again and again while the answer is 503: under load, requests may wait too long for a
    /// connection to Postgres.
    ///
    /// # Panics
    /// As [`Self::send`], and if the request has a body that can't be repeated.
    pub async fn send_until_available(self) -> Response {
        loop {
            let again = self.builder.try_clone().expect("the request can be repeated");
            let response = Self { builder: again }.send().await;
            if response.status != 503 {
                return response;
            }
        }
    }
}

/// Percent-encodes a path segment or query value.
pub fn percent(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'@' => {
                encoded.push(char::from(byte));
            }
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}
