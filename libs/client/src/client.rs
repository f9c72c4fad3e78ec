//! The requests of the token API, repeated where the server says so.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempmail_model::chance;
use tempmail_model::clock::{Clock as _, SystemClock};
use tempmail_model::retry_after::RetryAfter;
use tokio::time::{Instant, sleep, timeout};
use url::Url;
use url::form_urlencoded::byte_serialize;
use uuid::Uuid;

use crate::answer::{Email, EmailList, EmailSummary, Extraction, FoundEmail, MintedToken, ServerConfig};
use crate::error::Error;
use crate::request::{Scope, WaitRequest};
use crate::token::LiveToken;
use crate::transport::{Answer, Transport, TransportError};

/// Carries the live token.
const API_TOKEN: HeaderName = HeaderName::from_static("x-api-token");
/// The cursor that a wait without mail has reached.
const NEXT_SINCE: HeaderName = HeaderName::from_static("x-next-since");
/// Asks a long-poll to answer at once (RFC 7240).
const PREFER: HeaderName = HeaderName::from_static("prefer");

/// Mails of the longest list.
const PAGE: u8 = 50;

/// How long an answer may take, beside what the server is asked to wait.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a request that is refused for now is repeated.
const PATIENCE: Duration = Duration::from_secs(30);
/// The pause before a request is repeated where the server names none.
const PAUSE: Duration = Duration::from_millis(500);
/// How much longer a client waits at most, so that clients that were refused together do not come back together.
const SPREAD: Duration = Duration::from_millis(250);

/// Sends requests of the token API with one live token. Cheap to clone; clones share the connections.
#[derive(Clone)]
pub struct Client {
    transport: Arc<dyn Transport>,
    token: LiveToken,
}

/// What a call of `POST /v1/wait` answers.
pub(crate) enum WaitAnswer {
    Found(Box<FoundEmail>),
    /// The cursor that it has reached.
    Nothing(String),
}

impl Client {
    /// A client with this token.
    pub fn new(transport: Arc<dyn Transport>, token: LiveToken) -> Self {
        Self { transport, token }
    }

    /// The same with another token.
    pub(crate) fn with_token(&self, token: LiveToken) -> Self {
        Self { transport: Arc::clone(&self.transport), token }
    }

    /// The public configuration.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn config(&self) -> Result<ServerConfig, Error> {
        parse(&self.send(Method::GET, "/v1/config".into(), &[], None).await?.body)
    }

    /// The newest mail of a scope, at most `limit` (1 to 50), newest first. Does not wait.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn list(&self, scope: &Scope, limit: u8) -> Result<EmailList, Error> {
        self.list_page(scope, limit, None).await
    }

    /// The mail of a scope that came after a cursor, at most 50, oldest first; without a cursor, the newest. Does not wait.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn list_since(&self, scope: &Scope, since: Option<&str>) -> Result<Vec<EmailSummary>, Error> {
        let mut emails = self.list_page(scope, PAGE, since).await?.emails;
        emails.reverse();
        Ok(emails)
    }

    async fn list_page(&self, scope: &Scope, limit: u8, since: Option<&str>) -> Result<EmailList, Error> {
        let path = match scope {
            Scope::Address(address) => path(&["inbox", address])?,
            Scope::Domain(domain) => path(&["domain", domain])?,
            Scope::All => path(&["me"])?,
        };
        let now = [(PREFER, HeaderValue::from_static("wait=0"))];
        let since =
            since.map(|since| format!("&since={}", byte_serialize(since.as_bytes()).collect::<String>()));
        let target = format!("{path}?limit={limit}{}", since.unwrap_or_default());
        let answer = self.send(Method::GET, target, &now, None).await?;
        if answer.status == StatusCode::NO_CONTENT {
            return Ok(EmailList { emails: Vec::new(), next_since: next_since(&answer.headers) });
        }
        parse(&answer.body)
    }

    /// A whole mail.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn email(&self, id: Uuid) -> Result<Email, Error> {
        parse(&self.send(Method::GET, format!("/v1/email/{id}"), &[], None).await?.body)
    }

    /// The codes and links of a mail.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn extraction(&self, id: &str) -> Result<Extraction, Error> {
        parse(&self.send(Method::GET, path(&["email", id, "codes"])?, &[], None).await?.body)
    }

    /// Deletes a mail.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn delete_email(&self, id: Uuid) -> Result<(), Error> {
        self.send(Method::DELETE, format!("/v1/email/{id}"), &[], None).await.map(drop)
    }

    /// Deletes all mail of an address.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn clear_inbox(&self, address: &str) -> Result<(), Error> {
        self.send(Method::DELETE, path(&["inbox", address])?, &[], None).await.map(drop)
    }

    /// Mints a token for one address, which expires after `expires_in`, at most an hour.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn mint_token(&self, address: &str, expires_in: Duration) -> Result<MintedToken, Error> {
        #[derive(Deserialize)]
        struct Minted {
            token: String,
            since: String,
        }
        let seconds = expires_in.as_secs().clamp(1, 3_600);
        let body = json!({"address": address, "expires_in_seconds": seconds});
        let answer = self.send(Method::POST, "/v1/tokens".into(), &[], Some(&body)).await?;
        let Minted { token, since } = parse(&answer.body)?;
        let token =
            LiveToken::parse(&token).map_err(|_other| Error::Unexpected("a minted token is malformed"))?;
        Ok(MintedToken { token, since })
    }

    /// One call of `POST /v1/wait`, which is not repeated.
    ///
    /// # Errors
    /// [`Error`], with the pause before the call may be repeated where it may.
    pub(crate) async fn wait_once(
        &self,
        request: &WaitRequest,
        timeout_seconds: u64,
    ) -> Result<WaitAnswer, (Error, Option<Duration>)> {
        let body = request.body(timeout_seconds);
        let limit = ANSWER_TIMEOUT + Duration::from_secs(timeout_seconds);
        let answer = self.send_once(&Method::POST, "/v1/wait", &[], Some(&body), limit).await?;
        if answer.status == StatusCode::NO_CONTENT {
            let cursor = next_since(&answer.headers);
            return Ok(WaitAnswer::Nothing(cursor));
        }
        parse(&answer.body).map(|found| WaitAnswer::Found(Box::new(found))).map_err(|error| (error, None))
    }

    /// Sends a request until it is not refused for now.
    async fn send(
        &self,
        method: Method,
        path: String,
        headers: &[(HeaderName, HeaderValue)],
        body: Option<&Value>,
    ) -> Result<Answer, Error> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.send_once(&method, &path, headers, body, ANSWER_TIMEOUT).await {
                Ok(answer) => return Ok(answer),
                Err((_, Some(pause))) if Instant::now() + pause < deadline => sleep(pause).await,
                Err((error, _)) => return Err(error),
            }
        }
    }

    async fn send_once(
        &self,
        method: &Method,
        path: &str,
        headers: &[(HeaderName, HeaderValue)],
        body: Option<&Value>,
        limit: Duration,
    ) -> Result<Answer, (Error, Option<Duration>)> {
        let request = self.request(method, path, headers, body).map_err(|error| (error, None))?;
        let answer = timeout(limit, self.transport.send(request)).await.unwrap_or_else(|_elapsed| {
            Err(TransportError::Unreachable { reason: "no answer in time".into(), connected: true })
        });
        let answer = answer.map_err(|error| (error.into(), None))?;
        if answer.status.is_success() {
            return Ok(answer);
        }
        let error = refusal(&answer);
        let pause = error.is_passing().then(|| pause(&answer.headers));
        Err((error, pause))
    }

    fn request(
        &self,
        method: &Method,
        path: &str,
        headers: &[(HeaderName, HeaderValue)],
        body: Option<&Value>,
    ) -> Result<Request<Bytes>, Error> {
        let unsendable = || Error::Invalid("the request can't be sent".into());
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        request = request.header(API_TOKEN, self.token.header().ok_or_else(unsendable)?);
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let body = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        request.body(body).map_err(|_malformed| unsendable())
    }
}

impl From<TransportError> for Error {
    fn from(error: TransportError) -> Self {
        match error {
            TransportError::Unreachable { reason, connected } => Self::Unreachable { reason, connected },
            TransportError::TooLarge { limit } => Self::TooLarge { limit },
        }
    }
}

/// The path of segments below `/v1`, which are encoded.
fn path(segments: &[&str]) -> Result<String, Error> {
    // A segment of dots would be another path.
    if let Some(dots) = segments.iter().find(|segment| segment.chars().all(|character| character == '.')) {
        return Err(Error::Invalid(format!("{dots:?} is neither an address nor a domain")));
    }
    let mut url = Url::parse("http://localhost/v1").map_err(|_never| Error::Unexpected("no path"))?;
    if let Ok(mut path) = url.path_segments_mut() {
        path.extend(segments);
    }
    Ok(url.path().to_owned())
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(body).map_err(|_other| Error::Unexpected("its fields are others"))
}

fn next_since(headers: &HeaderMap) -> String {
    headers.get(NEXT_SINCE).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

fn refusal(answer: &Answer) -> Error {
    if !answer.status.is_client_error() && !answer.status.is_server_error() {
        return Error::Unexpected("its status is no success and no error");
    }
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    // Something before the server may answer anything: only what looks like a code is one.
    let code = body["error"].as_str().filter(|code| {
        code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    });
    Error::Refused { status: answer.status, code: code.unwrap_or_default().to_owned() }
}

/// How long to wait before a request is repeated that was refused for now.
fn pause(headers: &HeaderMap) -> Duration {
    let named = headers.get(RETRY_AFTER).and_then(|value| RetryAfter::parse(value.to_str().ok()?));
    let named = named.map(|retry_after| retry_after.delay(SystemClock::default().now()).unsigned_abs());
    named.unwrap_or(PAUSE) + SPREAD.mul_f64(chance::factor(0.0..=1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_segments_of_paths() {
        assert_eq!(path(&["inbox", "a+b@c.example"]).unwrap(), "/v1/inbox/a+b@c.example");
        assert_eq!(
            path(&["inbox", "a/../b?c#d@e.example"]).unwrap(),
            "/v1/inbox/a%2F..%2Fb%3Fc%23d@e.example"
        );
        for dots in [".", "..", ""] {
            assert!(path(&["domain", dots]).is_err(), "{dots}");
        }
    }

    #[test]
    fn waits_as_long_as_the_server_says() {
        let pause = |retry_after: Option<&str>| {
            let fields = retry_after.map(|value| (RETRY_AFTER, HeaderValue::from_str(value).unwrap()));
            pause(&fields.into_iter().collect())
        };
        assert_eq!(pause(Some("3")).as_secs(), 3);
        assert_eq!(pause(Some("86400")).as_secs(), 86_400);
        assert!(pause(Some("Fri, 31 Dec 9999 23:59:59 GMT")) > Duration::from_secs(86_400));
        assert!(pause(Some("Sun, 06 Nov 1994 08:49:37 GMT")) < PAUSE);
        assert!(pause(None) < Duration::from_secs(1) && pause(Some("soon")) >= PAUSE);
    }

    #[test]
    fn repeats_what_is_refused_for_now() {
        let is_passing = |status: u16, body: &'static str| {
            let status = StatusCode::from_u16(status).unwrap();
            refusal(&Answer { status, headers: HeaderMap::new(), body: body.into() }).is_passing()
        };
        for status in [408, 429, 500, 502, 503, 504, 520, 522, 524, 530, 599] {
            assert!(is_passing(status, "<html>"), "{status}");
        }
        assert!(is_passing(503, r#"{"error": "unavailable"}"#));
        assert!(!is_passing(500, r#"{"error": "internal_error"}"#), "the server says so itself");
        for status in [302, 400, 401, 404, 421, 440] {
            assert!(!is_passing(status, "<html>"), "{status}");
        }
    }

    #[test]
    fn takes_only_what_looks_like_a_code_for_one() {
        let code = |body: &'static str| {
            let answer =
                Answer { status: StatusCode::FORBIDDEN, headers: HeaderMap::new(), body: body.into() };
            refusal(&answer).code().to_owned()
        };
        assert_eq!(code(r#"{"error": "account_disabled"}"#), "account_disabled");
        assert_eq!(code(r#"{"error": "\u001b[2J"}"#), "");
        assert_eq!(code("<html>"), "");
    }
}
