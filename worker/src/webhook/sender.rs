//! One attempt: a request to a receiver, and what came of it.

use std::error::Error;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use jiff::SignedDuration;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Response, StatusCode, Url};
use tempmail_runtime::config::Config;

use super::address_guard::{AddressGuard, Refusal, resolver};
use super::destination::{Destinations, Reach};
use super::open_files::are_exhausted;

/// Longest that a connection may take to be made, TLS included.
const CONNECT: Duration = Duration::from_secs(5);
/// Longest that DNS may take, and as a part of what is allowed for the whole.
const LOOK_UP: Duration = Duration::from_secs(4);
const LOOK_UP_PART: u32 = 2;
/// Octets of an answer that are read; none of them is kept.
const ANSWER_MAX: usize = 16 << 10;
/// Octets that a receiver may send over HTTP/2 before they are read: of one answer, and of all in
/// a connection.
const STREAM_WINDOW: u32 = 16 << 10;
const CONNECTION_WINDOW: u32 = 256 << 10;
/// Connections to one host that are kept for the next request, and for how long.
const KEPT: usize = 16;
const KEPT_FOR: Duration = Duration::from_secs(30);

/// What came of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answer {
    /// 0 where there was none.
    pub(super) status_code: i32,
    /// One of the interface's words; `None` for a success.
    pub(super) error: Option<&'static str>,
    /// How long it took.
    pub(super) took: Duration,
    /// What a 429 or 503 asks for.
    pub(super) retry_after: Option<SignedDuration>,
}

/// No attempt was made: this process, or its system, had no file left for a connection. It is no
/// fault of the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoFile;

/// Sends requests to receivers. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Sender {
    to_public: Client,
    to_allowed: Client,
    destinations: Arc<Destinations>,
}

impl Sender {
    /// As `webhooks.*` says.
    ///
    /// # Errors
    /// `webhooks.ca_file` can't be read, or the system's DNS servers.
    pub(super) fn new(config: &Config) -> anyhow::Result<Self> {
        let webhooks = &config.webhooks;
        let destinations = Arc::new(Destinations::new(&webhooks.allowed_networks, &webhooks.denied_networks));
        let resolver = resolver(&config.dns.servers).context("the system's DNS servers")?;
        let trusted = trusted(webhooks.ca_file.as_deref())?;
        let whole = Duration::from_secs(webhooks.timeout_seconds);
        let client = |reach| {
            let guard = AddressGuard {
                resolver: resolver.clone(),
                destinations: Arc::clone(&destinations),
                reach,
                within: LOOK_UP.min(whole / LOOK_UP_PART),
            };
            Client::builder()
                .user_agent(concat!("tempmail/", env!("CARGO_PKG_VERSION")))
                .https_only(true)
                .no_proxy()
                .redirect(Policy::none())
                .dns_resolver(Arc::new(guard))
                .connect_timeout(CONNECT)
                .timeout(whole)
                .http2_initial_stream_window_size(STREAM_WINDOW)
                .http2_initial_connection_window_size(CONNECTION_WINDOW)
                .pool_max_idle_per_host(KEPT)
                .pool_idle_timeout(KEPT_FOR)
                .tls_certs_only(trusted.iter().cloned())
                .build()
        };
        Ok(Self { to_public: client(Reach::Public)?, to_allowed: client(Reach::Allowed)?, destinations })
    }

    /// Sends one request; 2xx is a success.
    ///
    /// # Errors
    /// [`NoFile`]
    pub(super) async fn send(&self, url: &str, headers: HeaderMap, body: Vec<u8>) -> Result<Answer, NoFile> {
        let _in_flight = InFlight::begin();
        let began = Instant::now();
        let url = Url::parse(url).ok();
        let reach = url.as_ref().and_then(|url| self.destinations.reach(url));
        let (Some(url), Some(reach)) = (url, reach) else {
            return Ok(failed("blocked_address", Duration::ZERO));
        };
        let client = match reach {
            Reach::Public => &self.to_public,
            Reach::Allowed => &self.to_allowed,
        };
        let answered = async {
            let response = client.post(url).headers(headers).body(body).send().await?;
            let (status, retry_after) = (response.status(), retry_after(&response));
            read_some(response).await?;
            Ok::<_, reqwest::Error>((status, retry_after))
        };
        let error = match answered.await {
            Ok((status, retry_after)) => {
                return Ok(Answer {
                    status_code: i32::from(status.as_u16()),
                    error: (!status.is_success()).then_some("http_status"),
                    took: began.elapsed(),
                    retry_after,
                });
            }
            Err(error) => error,
        };
        match word(&error)? {
            // What is blocked takes no time, whatever DNS took.
            "blocked_address" => Ok(failed("blocked_address", Duration::ZERO)),
            word => Ok(failed(word, began.elapsed())),
        }
    }
}

/// The authorities that receivers' certificates may come from: the system's, or where it has none
/// those of Mozilla, and what is in `ca_file`.
fn trusted(ca_file: Option<&Path>) -> anyhow::Result<Vec<Certificate>> {
    let mut system = rustls_native_certs::load_native_certs().certs;
    if system.is_empty() {
        system.extend_from_slice(webpki_root_certs::TLS_SERVER_ROOT_CERTS);
    }
    let mut trusted = system.iter().map(|der| Certificate::from_der(der)).collect::<Result<Vec<_>, _>>()?;
    if let Some(file) = ca_file {
        let named = || format!("`webhooks.ca_file` {}", file.display());
        let pem = std::fs::read(file).with_context(named)?;
        let bundle = Certificate::from_pem_bundle(&pem).with_context(named)?;
        ensure!(!bundle.is_empty(), "{} has no certificate", named());
        trusted.extend(bundle);
    }
    Ok(trusted)
}

/// Counts a request while it is under way.
struct InFlight;

impl InFlight {
    fn begin() -> Self {
        metrics::gauge!("tempmail_webhook_requests_in_flight").increment(1);
        Self
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        metrics::gauge!("tempmail_webhook_requests_in_flight").decrement(1);
    }
}

fn failed(error: &'static str, took: Duration) -> Answer {
    Answer { status_code: 0, error: Some(error), took, retry_after: None }
}

/// Reads an answer's body, so that the connection can be kept; of a long one only the beginning.
async fn read_some(mut response: Response) -> reqwest::Result<()> {
    let mut read = 0;
    while read < ANSWER_MAX
        && let Some(chunk) = response.chunk().await?
    {
        read += chunk.len();
    }
    Ok(())
}

/// Seconds that a 429 or a 503 asks for.
fn retry_after(response: &Response) -> Option<SignedDuration> {
    let asks = matches!(response.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
    let value = response.headers().get(RETRY_AFTER).filter(|_| asks)?.to_str().ok()?.trim();
    let is_number = !value.is_empty() && value.bytes().all(|octet| octet.is_ascii_digit());
    // What is more than fits is too long in any case.
    let seconds = is_number.then(|| value.parse().unwrap_or(u32::MAX))?;
    Some(SignedDuration::from_secs(i64::from(seconds)))
}

/// The interface's word for a failure.
fn word(error: &reqwest::Error) -> Result<&'static str, NoFile> {
    if error.is_timeout() {
        return Ok("timeout");
    }
    let mut source: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(cause) = source {
        if let Some(refusal) = cause.downcast_ref::<Refusal>() {
            return match refusal {
                Refusal::Blocked => Ok("blocked_address"),
                Refusal::NoAddress => Ok("dns_failure"),
                Refusal::NoFile => Err(NoFile),
            };
        }
        if cause.is::<rustls::Error>() {
            return Ok("tls_failure");
        }
        if let Some(io) = cause.downcast_ref::<io::Error>() {
            if are_exhausted(io) {
                return Err(NoFile);
            }
            if io.kind() == io::ErrorKind::ConnectionRefused {
                return Ok("connection_refused");
            }
            // An error within an I/O error is not among its sources.
            if let Some(inner) = io.get_ref() {
                source = Some(inner);
                continue;
            }
        }
        source = cause.source();
    }
    Ok("connection_failed")
}
