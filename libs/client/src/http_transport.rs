//! Requests over HTTP.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use http::Request;
use reqwest::redirect::Policy;
use url::{Host, Url};

use crate::transport::{Answer, Transport, TransportError};

/// Bytes of an answer that are read: a mail of 25 MiB, with its text escaped.
const ANSWER_MAX: usize = 64 << 20;
/// Fields of an answer's header section, and its size over HTTP/2.
const HEADER_FIELDS_MAX: usize = 1_000;
const HEADER_SIZE_MAX: u32 = 256 << 10;
/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A text that is not a base URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the base URL must be http:// or https:// with a host, without user, query and fragment")]
pub struct InvalidUrl;

/// Sends requests to a server over HTTP. Redirects are not followed: the token is for this server.
#[derive(Debug)]
pub struct HttpTransport {
    /// Without a trailing slash.
    base: String,
    http: reqwest::Client,
}

impl HttpTransport {
    /// A transport to the server with this base URL, which may have a path. Loopback is reached directly, other
    /// hosts by the proxy of the environment, if there is one.
    ///
    /// # Errors
    /// [`InvalidUrl`].
    pub fn new(base_url: &str) -> Result<Self, InvalidUrl> {
        let base = parse(base_url)?;
        let mut http = reqwest::Client::builder()
            .redirect(Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .http1_max_headers(HEADER_FIELDS_MAX)
            .http2_max_header_list_size(HEADER_SIZE_MAX)
            .user_agent(concat!("tempmail/", env!("CARGO_PKG_VERSION")));
        if is_loopback(&base) {
            http = http.no_proxy();
        }
        let http = http.build().map_err(|_no_certificates| InvalidUrl)?;
        Ok(Self { base: base.as_str().trim_end_matches('/').to_owned(), http })
    }

    /// Whether a base URL names this machine by `localhost` or a loopback address.
    pub fn is_loopback(base_url: &str) -> bool {
        parse(base_url).is_ok_and(|url| is_loopback(&url))
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<Answer, TransportError> {
        let (parts, body) = request.into_parts();
        let url = format!("{}{}", self.base, parts.uri);
        let sent = self.http.request(parts.method, url).headers(parts.headers).body(body).send().await;
        let mut response = sent.map_err(|error| failed(error, false))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let mut body = BytesMut::new();
        loop {
            let chunk = match response.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break,
                // The status of an error says enough.
                Err(_broken) if !status.is_success() => break,
                Err(error) => return Err(failed(error, true)),
            };
            if body.len() + chunk.len() > ANSWER_MAX {
                return Err(TransportError::TooLarge { limit: ANSWER_MAX });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Answer { status, headers, body: body.freeze() })
    }
}

impl Transport for HttpTransport {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Answer, TransportError>> {
        Box::pin(self.exchange(request))
    }
}

fn parse(base_url: &str) -> Result<Url, InvalidUrl> {
    let url = Url::parse(base_url).map_err(|_malformed| InvalidUrl)?;
    let is_plain = url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    if is_plain && url.has_host() && ["http", "https"].contains(&url.scheme()) {
        Ok(url)
    } else {
        Err(InvalidUrl)
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// What failed, without the URL, whose path may have an address.
fn failed(error: reqwest::Error, answered: bool) -> TransportError {
    let connected = answered || !error.is_connect();
    let error = error.without_url();
    let mut reason = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(next) = cause {
        reason = next.to_string();
        cause = next.source();
    }
    TransportError::Unreachable { reason, connected }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_base_urls_and_nothing_else() {
        for valid in ["http://localhost:8080", "https://mail.example/", "https://mail.example/tempmail"] {
            assert!(parse(valid).is_ok(), "{valid}");
        }
        for invalid in [
            "",
            "mail.example",
            "ftp://mail.example",
            "https://user@mail.example",
            "https://:secret@mail.example",
            "https://mail.example/?a",
            "https://mail.example/#a",
        ] {
            assert!(parse(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn knows_loopback_by_its_names() {
        for own in ["http://localhost:1", "http://a.localhost", "http://127.9.9.9", "http://[::1]:8080"] {
            assert!(HttpTransport::is_loopback(own), "{own}");
        }
        for other in ["http://mail.example", "http://localhost.example", "http://192.0.2.1", "nonsense"] {
            assert!(!HttpTransport::is_loopback(other), "{other}");
        }
    }
}
