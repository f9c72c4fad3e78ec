//! Limits on requests: by client where there is no credential, by token or mailbox where there is one, on creating
//! mailboxes by client, on failed sign-ins, on password resets and changes by tenant, and on requests that nobody may
//! make. They apply before any hashing, and use real time, not business time.

mod refused;
mod sign_in;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue};
use tempmail_admission::{ClientNetwork, NETWORK_TIMES};
use tempmail_bus::{RateDecision, RateLimit, SharedBus};
use tempmail_model::limits::TENANT_CHANGES_WINDOW;
use tempmail_runtime::config::Limits;
use uuid::Uuid;

use self::refused::RefusedRequests;
use self::sign_in::SignInLimits;
use super::client::Client;
use super::error::ApiError;

pub(crate) use sign_in::SignInAttempt;

const MINUTE: Duration = Duration::from_secs(60);

/// All limits of one API server, shared with the other servers over the bus; their memory is bounded.
pub(crate) struct RequestLimits {
    bus: SharedBus,
    public: PerNetwork<RateLimit>,
    mailboxes: RateLimit,
    tokens: RateLimit,
    minted_tokens: RateLimit,
    pro_tokens: RateLimit,
    free_mailboxes: PerNetwork<RateLimit>,
    password_resets: RateLimit,
    changes: RateLimit,
    sign_ins: SignInLimits,
    refused: RefusedRequests,
}

impl RequestLimits {
    pub(crate) fn new(bus: SharedBus, limits: &Limits) -> Self {
        let (second, hour) = (Duration::from_secs(1), Duration::from_secs(3600));
        let by_client = |name, limit: u32, window| {
            PerNetwork::new(|times| RateLimit::new(name, limit.saturating_mul(times), window))
        };
        Self {
            bus,
            public: by_client("api", limits.api_per_second, second),
            mailboxes: RateLimit::new("mailbox", limits.api_per_second, second),
            tokens: RateLimit::new("v1", limits.v1_per_second, second),
            minted_tokens: RateLimit::new("minted", limits.minted_per_second, second),
            pro_tokens: RateLimit::new("pro", limits.pro_per_second, second),
            free_mailboxes: by_client("free-mailboxes", limits.free_mailboxes_per_hour, hour),
            password_resets: RateLimit::new("password-resets", limits.password_resets_per_minute, MINUTE),
            changes: RateLimit::new("changes", limits.tenant_changes, TENANT_CHANGES_WINDOW),
            sign_ins: SignInLimits::new(limits),
            refused: RefusedRequests::new(limits.refused_per_minute),
        }
    }

    /// Counts a request that needs no credential; `None` where the client has no limit.
    pub(crate) async fn count_public(&self, client: Client) -> Option<RateDecision> {
        self.count_for_client(&self.public, client).await
    }

    /// Counts a request with a JWT of a mailbox.
    pub(crate) async fn count_mailbox(&self, mailbox: Uuid) -> RateDecision {
        self.bus.check_rate(&self.mailboxes, mailbox.into()).await
    }

    /// Counts a request of a live token, or of a minted one.
    pub(crate) async fn count_live_token(&self, token: Uuid) -> RateDecision {
        self.bus.check_rate(&self.tokens, token.into()).await
    }

    /// Counts a request of any of a tenant's minted tokens, which its own rate allows.
    pub(crate) async fn count_minted_token(&self, tenant: Uuid) -> RateDecision {
        self.bus.check_rate(&self.minted_tokens, tenant.into()).await
    }

    /// Counts a request of a Pro token, or of one of its sessions.
    pub(crate) async fn count_pro_token(&self, token: Uuid) -> RateDecision {
        self.bus.check_rate(&self.pro_tokens, token.into()).await
    }

    /// Counts an attempt to create a mailbox without a Pro token.
    pub(crate) async fn count_free_mailbox(&self, client: Client) -> Option<RateDecision> {
        self.count_for_client(&self.free_mailboxes, client).await
    }

    /// Counts a password that a tenant resets.
    pub(crate) async fn count_password_reset(&self, tenant: Uuid) -> RateDecision {
        self.bus.check_rate(&self.password_resets, tenant.into()).await
    }

    /// Counts something that a tenant is about to make: a token, a session, a webhook or its secret, a domain, a mailbox.
    /// Each is in the audit trail.
    ///
    /// # Errors
    /// [`ApiError::RateLimitExceeded`]: the tenant makes too much, and must not make this.
    pub(crate) async fn admit_change(&self, tenant: Uuid) -> Result<(), ApiError> {
        enforce("changes", self.count_change(tenant).await)
    }

    /// Counts something that a tenant ends, which is never refused.
    pub(crate) async fn count_change(&self, tenant: Uuid) -> RateDecision {
        self.bus.check_rate(&self.changes, tenant.into()).await
    }

    /// Counts a request whose credential was missing or not accepted; the decision where its client has made too
    /// many.
    pub(crate) fn count_refused(&self, client: Client) -> Option<RateDecision> {
        self.refused.count(client)
    }

    /// Whether its client has made too many refused requests, so that the next may be one of them.
    pub(crate) fn is_suspect(&self, client: Client) -> bool {
        self.refused.is_suspect(client)
    }

    /// Begins a sign-in, which counts as failed in advance: so concurrent attempts can't exceed the limit.
    ///
    /// # Errors
    /// [`ApiError::RateLimitExceeded`] where too many sign-ins failed.
    pub(crate) async fn begin_sign_in(
        &self,
        address: &str,
        client: Client,
    ) -> Result<SignInAttempt, ApiError> {
        self.sign_ins.begin(&self.bus, address, client).await
    }

    async fn count_for_client(&self, limits: &PerNetwork<RateLimit>, client: Client) -> Option<RateDecision> {
        let counted = limits.of(client).map(|(limit, network)| (limit, network.into())).collect();
        self.bus.check_rates(counted).await
    }
}

/// Turns a decision of the limit `name` into the answer of a request that exceeds it.
///
/// # Errors
/// [`ApiError::RateLimitExceeded`].
pub(crate) fn enforce(name: &'static str, decision: RateDecision) -> Result<(), ApiError> {
    if decision.allowed {
        Ok(())
    } else {
        let retry_after = decision.retry_after;
        Err(ApiError::RateLimitExceeded { retry_after, limit: name, decision: Some(decision) })
    }
}

/// The limits of the networks of a client, narrowest first: each network counts, and the wider ones have more.
struct PerNetwork<L>([L; NETWORK_TIMES.len()]);

impl<L> PerNetwork<L> {
    /// With those that `limit` makes of how many times the limit of one client a network has.
    fn new(limit: impl Fn(u32) -> L) -> Self {
        Self(NETWORK_TIMES.map(limit))
    }

    /// The limits of a client, with the network that each counts by; none for a client without limits.
    fn of(&self, client: Client) -> impl Iterator<Item = (&L, ClientNetwork)> {
        self.0.iter().zip(client.networks().map(|(network, _)| network))
    }
}

/// The fields of draft-ietf-httpapi-ratelimit-headers.
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// The decision of a limit, recorded while a request is handled and written to its answer. One per
/// request.
#[derive(Clone, Default)]
pub(crate) struct RateLimitHeaders(Arc<OnceLock<(&'static str, RateDecision)>>);

impl RateLimitHeaders {
    /// Records the decision of the limit `name` with the request; the first one counts.
    ///
    /// # Errors
    /// [`ApiError::RateLimitExceeded`] where the request exceeds the limit.
    pub(crate) fn enforce_in(
        extensions: &Extensions,
        name: &'static str,
        decision: RateDecision,
    ) -> Result<(), ApiError> {
        match extensions.get::<Self>() {
            Some(report) => report.enforce(name, decision),
            None => enforce(name, decision),
        }
    }

    /// Records the decision of the limit `name`; the first one counts.
    ///
    /// # Errors
    /// [`ApiError::RateLimitExceeded`] where the request exceeds the limit.
    pub(crate) fn enforce(&self, name: &'static str, decision: RateDecision) -> Result<(), ApiError> {
        let _ = self.0.set((name, decision));
        enforce(name, decision)
    }

    /// Writes the fields, if a decision was recorded and the answer does not have those of the limit that refused it.
    pub(crate) fn write_to(&self, headers: &mut HeaderMap) {
        if let Some((name, decision)) = self.0.get()
            && !headers.contains_key(LIMIT)
        {
            write_headers(name, *decision, headers);
        }
    }
}

/// Writes the fields of a decision of the limit `name`.
pub(crate) fn write_headers(name: &str, decision: RateDecision, headers: &mut HeaderMap) {
    let window = decision.window.as_secs().max(1);
    let reset = decision.reset.as_secs() + u64::from(decision.reset.subsec_nanos() > 0);
    let policy = format!("\"{name}\";q={};w={window}", decision.limit);
    let limit = format!("\"{name}\";r={};t={reset}", decision.remaining);
    for (field, value) in [(POLICY, policy), (LIMIT, limit)] {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(field, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use tempmail_admission::Client as Origin;
    use tempmail_bus::LocalBus;
    use tempmail_runtime::config::Http;

    use super::*;
    use crate::http::client::ClientResolver;

    fn client(address: &str) -> Client {
        let http = Http {
            trusted_proxies: vec![],
            unlimited_networks: vec!["127.0.0.0/8".parse().unwrap()],
            ..Http::default()
        };
        let address: IpAddr = address.parse().unwrap();
        ClientResolver::new(&http).of_request(address, &HeaderMap::new())
    }

    fn limits() -> RequestLimits {
        RequestLimits::new(Arc::new(LocalBus::new()), &Limits::default())
    }

    #[tokio::test]
    async fn limits_failed_sign_ins_per_address_and_client() {
        let limits = limits();
        let (one, two) = (client("192.0.2.1"), client("192.0.2.2"));
        for _ in 0..10 {
            limits.begin_sign_in("a@b.example", one).await.unwrap().keep();
        }
        assert!(limits.begin_sign_in("a@b.example", one).await.is_err());
        assert!(limits.begin_sign_in("c@b.example", one).await.is_ok());
        assert!(limits.begin_sign_in("a@b.example", two).await.is_ok());
    }

    #[tokio::test]
    async fn does_not_count_successes_nor_unlimited_clients() {
        let limits = limits();
        for _ in 0..300 {
            limits.begin_sign_in("a@b.example", client("192.0.2.1")).await.unwrap().uncount().await;
            limits.begin_sign_in("a@b.example", client("127.0.0.1")).await.unwrap().keep();
            assert!(limits.count_public(client("127.0.0.1")).await.is_none());
        }
    }

    #[tokio::test]
    async fn gives_an_attempt_back_whose_password_was_not_checked() {
        let limits = limits();
        for _ in 0..300 {
            drop(limits.begin_sign_in("a@b.example", client("192.0.2.1")).await.unwrap());
            // Given back in the background.
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn counts_each_network_of_a_client() {
        let limits = RequestLimits::new(
            Arc::new(LocalBus::new()),
            &Limits { free_mailboxes_per_hour: 2, sign_in_failures: 2, ..Limits::default() },
        );
        // Each in a /64 of its own: six /56 of one /48.
        let clients = (0..12).map(|n| client(&format!("2001:db8:0:{:x}::1", 0x80 * n)));
        let (mut made, mut attempted) = (0, 0);
        for client in clients.flat_map(|client| [client; 3]) {
            made += u32::from(limits.count_free_mailbox(client).await.unwrap().allowed);
            let attempt = limits.begin_sign_in("a@b.example", client).await;
            attempted += u32::from(attempt.map(SignInAttempt::keep).is_ok());
        }
        assert_eq!((made, attempted), (8, 8), "four times what one client may");
        assert!(limits.count_free_mailbox(client("2001:db8:1::1")).await.unwrap().allowed);
    }

    /// Of 200 sign-ins of a client that fail, each to another address, how many are attempted.
    async fn attempted(limits: &Limits) -> u32 {
        let limits = RequestLimits::new(Arc::new(LocalBus::new()), limits);
        let mut attempted = 0;
        for i in 0..200 {
            let attempt = limits.begin_sign_in(&format!("a{i}@b.example"), client("192.0.2.1")).await;
            attempted += u32::from(attempt.map(SignInAttempt::keep).is_ok());
        }
        attempted
    }

    #[tokio::test]
    async fn limits_failed_sign_ins_per_client_over_all_addresses() {
        let defaults = Limits::default();
        assert_eq!(attempted(&defaults).await, 20, "in a minute");
        assert_eq!(attempted(&Limits { sign_in_failures_per_minute: 200, ..defaults }).await, 100);
    }

    #[test]
    fn has_the_limit_of_each_network() {
        let limits = PerNetwork::new(|times| 10 * times);
        for address in ["192.0.2.1", "2001:db8::1"] {
            let origin = Origin::Address(address.parse().unwrap());
            let limited = limits.of(Client { origin, unlimited: false });
            let expected: Vec<_> = origin.networks().map(|(network, times)| (10 * times, network)).collect();
            assert_eq!(limited.map(|(limit, network)| (*limit, network)).collect::<Vec<_>>(), expected);
            assert_eq!(limits.of(Client { origin, unlimited: true }).count(), 0);
        }
    }

    #[test]
    fn writes_the_fields_of_the_draft() {
        let mut extensions = Extensions::new();
        let report = RateLimitHeaders::default();
        extensions.insert(report.clone());
        let decision = RateDecision {
            allowed: true,
            limit: 20,
            window: Duration::from_secs(1),
            remaining: 19,
            reset: Duration::from_millis(50),
            retry_after: Duration::ZERO,
        };
        RateLimitHeaders::enforce_in(&extensions, "client", decision).unwrap();
        let mut headers = HeaderMap::new();
        report.write_to(&mut headers);
        assert_eq!(headers["ratelimit-policy"], "\"client\";q=20;w=1");
        assert_eq!(headers["ratelimit"], "\"client\";r=19;t=1");
    }
}
