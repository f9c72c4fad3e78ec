//! One request to a receiver, and its outcome.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use hickory_resolver::TokioResolver;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode};
use tempmail_model::retry_after::RetryAfter;
use tempmail_model::webhook::{AddressScope, WebhookUrl};
use tempmail_runtime::config::{Config, Webhooks};
use tempmail_runtime::file_watch::FileWatch;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::failure::{NoFileDescriptor, RequestFailure};
use super::resolver::{DestinationPolicy, GuardedResolver, resolver};
use super::trust;

/// Longest that connecting may take, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest that DNS may take, and the part of the whole timeout that it may take.
const DNS_TIMEOUT: Duration = Duration::from_secs(4);
const DNS_TIMEOUT_DIVISOR: u32 = 2;
/// Fields of a response's header section, and its size: the octets of each name and value and 32 for each field, as
/// HTTP/2 counts (RFC 9113 6.5.2).
const HEADER_FIELDS_MAX: usize = 1_000;
const HEADER_SIZE_MAX: u32 = 256 << 10;
const HEADER_FIELD_OVERHEAD: usize = 32;
/// What the HTTP library may read beyond that before it refuses: pseudo-header fields.
const PSEUDO_FIELDS_SIZE: u32 = 1 << 10;
/// Bytes of a response's body that are read, so that the connection can be kept, and for how long; none of them is
/// stored.
const BODY_MAX: usize = 16 << 10;
const BODY_TIMEOUT: Duration = Duration::from_secs(1);
/// Bytes that a receiver may send over HTTP/2 before they are read: of one response, and of all on a
/// connection.
const STREAM_WINDOW: u32 = 16 << 10;
const CONNECTION_WINDOW: u32 = 256 << 10;
/// Idle connections to one host that are kept for the next request, and for how long.
const IDLE_MAX: usize = 16;
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RequestOutcome {
    /// 0 without a whole header section of a response.
    pub(super) status_code: i32,
    /// Why it failed; `None` for a success.
    pub(super) failure: Option<RequestFailure>,
    /// How long the status took.
    pub(super) duration: Duration,
    /// `Retry-After` of a 429 or 503.
    pub(super) retry_after: Option<RetryAfter>,
}

/// Sends requests to receivers. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Sender(Arc<SenderState>);

#[derive(Debug)]
struct SenderState {
    clients: RwLock<Clients>,
    policy: Arc<DestinationPolicy>,
    resolver: TokioResolver,
    webhooks: Webhooks,
    ca_file: Mutex<FileWatch>,
}

/// The HTTP clients; each has its own connections.
#[derive(Debug)]
struct Clients {
    public: Client,
    allowed_networks: Client,
}

impl Sender {
    /// A sender with the settings `webhooks.*`.
    ///
    /// # Errors
    /// `webhooks.ca_file` can't be read, or the system's DNS servers.
    pub(super) fn new(config: &Config) -> anyhow::Result<Self> {
        let webhooks = config.webhooks.clone();
        let policy = Arc::new(DestinationPolicy::new(&webhooks.allowed_networks, &webhooks.denied_networks));
        let resolver = resolver(&config.dns.servers).context("the system's DNS servers")?;
        let ca_file = Mutex::new(FileWatch::new(webhooks.ca_file.iter().cloned().collect()));
        let clients = RwLock::new(Clients::new(&webhooks, &resolver, &policy)?);
        Ok(Self(Arc::new(SenderState { clients, policy, resolver, webhooks, ca_file })))
    }

    /// Trusts the authorities of `webhooks.ca_file` whenever it changes, until the future is dropped. While the
    /// file can't be used, the former ones stay trusted.
    pub(super) async fn follow_ca_file(&self) {
        let SenderState { clients, policy, resolver, webhooks, ca_file } = &*self.0;
        let mut ca_file = ca_file.lock().await;
        loop {
            ca_file.changed().await;
            match Clients::new(webhooks, resolver, policy) {
                Ok(renewed) => {
                    *clients.write().unwrap_or_else(PoisonError::into_inner) = renewed;
                    tracing::info!("the authorities of webhooks.ca_file are renewed");
                }
                Err(error) => tracing::error!(
                    error = format!("{error:#}"),
                    "webhooks.ca_file can't be used: the former authorities stay trusted"
                ),
            }
        }
    }

    /// Sends one request; 2xx is a success.
    ///
    /// # Errors
    /// [`NoFileDescriptor`]: no request was sent.
    pub(super) async fn send(
        &self,
        url: &str,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<RequestOutcome, NoFileDescriptor> {
        let _in_flight = InFlightGauge::increment();
        let started = Instant::now();
        // Also one that was created when other rules held.
        let Ok(url) = WebhookUrl::parse(url, &self.0.webhooks.allowed_networks) else {
            return Ok(failed(RequestFailure::BLOCKED, Duration::ZERO));
        };
        let client = self.client(url.scope());
        let sent = client.post(url.url().clone()).headers(headers).body(body).send().await;
        match sent {
            Ok(response) => {
                let outcome = outcome(&response, started.elapsed());
                drain(response).await;
                Ok(outcome)
            }
            Err(error) => match RequestFailure::of(&error)? {
                // The duration would tell whether the name exists.
                RequestFailure::BLOCKED => Ok(failed(RequestFailure::BLOCKED, Duration::ZERO)),
                failure => Ok(failed(failure, started.elapsed())),
            },
        }
    }

    fn client(&self, scope: AddressScope) -> Client {
        let clients = self.0.clients.read().unwrap_or_else(PoisonError::into_inner);
        match scope {
            AddressScope::Public => clients.public.clone(),
            AddressScope::AllowedNetworks => clients.allowed_networks.clone(),
        }
    }
}

impl Clients {
    fn new(
        webhooks: &Webhooks,
        resolver: &TokioResolver,
        policy: &Arc<DestinationPolicy>,
    ) -> anyhow::Result<Self> {
        let tls = trust::client_config(webhooks.ca_file.as_deref())?;
        let timeout = Duration::from_secs(webhooks.timeout_seconds);
        let client = |scope| {
            let resolver = GuardedResolver {
                resolver: resolver.clone(),
                policy: Arc::clone(policy),
                scope,
                timeout: DNS_TIMEOUT.min(timeout / DNS_TIMEOUT_DIVISOR),
            };
            Client::builder()
                .user_agent(concat!("tempmail/", env!("CARGO_PKG_VERSION")))
                .https_only(true)
                .no_proxy()
                .redirect(Policy::none())
                .dns_resolver(Arc::new(resolver))
                .connect_timeout(CONNECT_TIMEOUT)
                .timeout(timeout)
                .http1_max_headers(HEADER_FIELDS_MAX)
                .http2_max_header_list_size(HEADER_SIZE_MAX + PSEUDO_FIELDS_SIZE)
                .http2_initial_stream_window_size(STREAM_WINDOW)
                .http2_initial_connection_window_size(CONNECTION_WINDOW)
                .pool_max_idle_per_host(IDLE_MAX)
                .pool_idle_timeout(IDLE_TIMEOUT)
                .tls_backend_preconfigured(tls.clone())
                .build()
        };
        Ok(Self {
            public: client(AddressScope::Public)?,
            allowed_networks: client(AddressScope::AllowedNetworks)?,
        })
    }
}

/// Counts a request while it is in flight.
struct InFlightGauge;

impl InFlightGauge {
    fn increment() -> Self {
        metrics::gauge!("tempmail_webhook_requests_in_flight").increment(1);
        Self
    }
}

impl Drop for InFlightGauge {
    fn drop(&mut self) {
        metrics::gauge!("tempmail_webhook_requests_in_flight").decrement(1);
    }
}

fn failed(failure: RequestFailure, duration: Duration) -> RequestOutcome {
    RequestOutcome { status_code: 0, failure: Some(failure), duration, retry_after: None }
}

/// The outcome of a request whose response has begun: nothing that comes after its header section changes it.
fn outcome(response: &Response, duration: Duration) -> RequestOutcome {
    if !is_within_limits(response.headers()) {
        return failed(RequestFailure::HEADER_TOO_LARGE, duration);
    }
    let status = response.status();
    RequestOutcome {
        status_code: i32::from(status.as_u16()),
        failure: (!status.is_success()).then_some(RequestFailure::HTTP_STATUS),
        duration,
        retry_after: retry_after(response),
    }
}

/// Whether a header section is within the limits, which are the same for every version of HTTP.
fn is_within_limits(headers: &HeaderMap) -> bool {
    let sizes = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + HEADER_FIELD_OVERHEAD);
    let size = u32::try_from(sizes.sum::<usize>()).unwrap_or(u32::MAX);
    headers.len() <= HEADER_FIELDS_MAX && size <= HEADER_SIZE_MAX
}

/// Reads the body of a response, so that the connection can be kept; of a long, slow or broken one only the beginning.
async fn drain(mut response: Response) {
    let read = async {
        let mut read = 0;
        while read < BODY_MAX
            && let Ok(Some(chunk)) = response.chunk().await
        {
            read += chunk.len();
        }
    };
    // The outcome is there already.
    let _ = timeout(BODY_TIMEOUT, read).await;
}

/// `Retry-After` of a 429 or 503.
fn retry_after(response: &Response) -> Option<RetryAfter> {
    let applies =
        matches!(response.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
    RetryAfter::parse(response.headers().get(RETRY_AFTER).filter(|_| applies)?.to_str().ok()?)
}
