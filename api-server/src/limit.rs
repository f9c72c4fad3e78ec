//! Limits on requests: `/api` a client, `/v1` and `/pro/api` a token, creating mailboxes a client, and
//! sign-ins that fail. They come before any hashing. They go by real time, not business time.

mod report;

use std::time::Duration;

use tempmail_bus::{Attempt, FailureLimit, RateDecision, RateKey, RateLimit, SharedBus};
use tempmail_model::limits::Limits;
use uuid::Uuid;

use crate::client::Client;

pub(crate) use report::RateReport;

/// Window of failed sign-ins.
const SIGN_IN_WINDOW: Duration = Duration::from_secs(15 * 60);

/// All limits of one API server, counted with those of the others; their memory is bounded.
pub(crate) struct RequestLimits {
    bus: SharedBus,
    api: RateLimit,
    tokens: RateLimit,
    pro_tokens: RateLimit,
    free_mailboxes: RateLimit,
    sign_in: FailureLimit,
    sign_in_client: FailureLimit,
}

impl RequestLimits {
    pub(crate) fn new(bus: SharedBus, limits: &Limits) -> Self {
        let (second, hour) = (Duration::from_secs(1), Duration::from_secs(3600));
        let of_client = limits.sign_in_failures_per_client;
        Self {
            bus,
            api: RateLimit::new("api", limits.api_per_second, second),
            tokens: RateLimit::new("v1", limits.v1_per_second, second),
            pro_tokens: RateLimit::new("pro", limits.pro_per_second, second),
            free_mailboxes: RateLimit::new("free-mailboxes", limits.free_mailboxes_per_hour, hour),
            sign_in: FailureLimit::new("sign-in", limits.sign_in_failures, SIGN_IN_WINDOW),
            sign_in_client: FailureLimit::new("sign-in-client", of_client, SIGN_IN_WINDOW),
        }
    }

    /// Counts a request on `/api`; `None` where the client has no limit.
    pub(crate) async fn of_client(&self, client: Client) -> Option<RateDecision> {
        self.count_client(&self.api, client).await
    }

    /// Counts a request of a live token.
    pub(crate) async fn of_token(&self, token: Uuid) -> RateDecision {
        self.bus.check_rate(&self.tokens, token.into()).await
    }

    /// Counts a request of a Pro token on `/pro/api`, or of a session that stands for it.
    pub(crate) async fn of_pro_token(&self, token: Uuid) -> RateDecision {
        self.bus.check_rate(&self.pro_tokens, token.into()).await
    }

    /// Counts an attempt to create a mailbox without a Pro token.
    pub(crate) async fn of_free_mailbox(&self, client: Client) -> Option<RateDecision> {
        self.count_client(&self.free_mailboxes, client).await
    }

    async fn count_client(&self, limit: &RateLimit, client: Client) -> Option<RateDecision> {
        if client.unlimited {
            return None;
        }
        Some(self.bus.check_rate(limit, client.key.into()).await)
    }

    /// Begins a sign-in, which counts as failed until [`SignIn::succeeded`]: so attempts side
    /// by side can't pass the limit together.
    ///
    /// # Errors
    /// How long to wait, where too many failed.
    pub(crate) async fn begin_sign_in(&self, address: &str, client: Client) -> Result<SignIn<'_>, Duration> {
        if client.unlimited {
            return Ok(SignIn { of_client: None, of_address: None });
        }
        let of_client = self.bus.begin_attempt(&self.sign_in_client, client.key.into()).await?;
        let with_address =
            RateKey::from_parts(&[address.as_bytes(), RateKey::from(client.key).as_uuid().as_bytes()]);
        match self.bus.begin_attempt(&self.sign_in, with_address).await {
            Ok(of_address) => Ok(SignIn { of_client: Some(of_client), of_address: Some(of_address) }),
            Err(wait) => {
                // Refused before any look at the password: only the address is used up.
                of_client.record_success().await;
                Err(wait)
            }
        }
    }
}

/// A sign-in under way.
pub(crate) struct SignIn<'a> {
    of_client: Option<Attempt<'a>>,
    of_address: Option<Attempt<'a>>,
}

impl SignIn<'_> {
    /// It did not fail: it is not counted.
    pub(crate) async fn record_success(self) {
        for attempt in self.of_client.into_iter().chain(self.of_address) {
            attempt.record_success().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::Arc;

    use axum::http::HeaderMap;
    use tempmail_bus::LocalBus;
    use tempmail_runtime::config::Http;

    use super::*;
    use crate::client::ClientRule;

    fn client(address: &str) -> Client {
        let http = Http {
            trusted_proxies: vec![],
            unlimited_networks: vec!["127.0.0.0/8".parse().unwrap()],
            ..Http::default()
        };
        let address: IpAddr = address.parse().unwrap();
        ClientRule::new(&http).of_request(address, &HeaderMap::new())
    }

    fn limits() -> RequestLimits {
        RequestLimits::new(Arc::new(LocalBus::new()), &Limits::default())
    }

    #[tokio::test]
    async fn ten_failures_an_address_and_client_then_the_others_go_on() {
        let limits = limits();
        let (one, two) = (client("192.0.2.1"), client("192.0.2.2"));
        for _ in 0..10 {
            assert!(limits.begin_sign_in("a@b.example", one).await.is_ok());
        }
        assert!(limits.begin_sign_in("a@b.example", one).await.is_err());
        assert!(limits.begin_sign_in("c@b.example", one).await.is_ok());
        assert!(limits.begin_sign_in("a@b.example", two).await.is_ok());
    }

    #[tokio::test]
    async fn successes_are_not_counted_and_unlimited_clients_never() {
        let limits = limits();
        for _ in 0..300 {
            limits.begin_sign_in("a@b.example", client("192.0.2.1")).await.unwrap().record_success().await;
            assert!(limits.begin_sign_in("a@b.example", client("127.0.0.1")).await.is_ok());
            assert!(limits.of_client(client("127.0.0.1")).await.is_none());
        }
    }

    #[tokio::test]
    async fn a_hundred_failures_a_client_over_all_addresses() {
        let limits = limits();
        let mut begun = 0;
        for i in 0..200 {
            let attempt = limits.begin_sign_in(&format!("a{i}@b.example"), client("192.0.2.1")).await;
            begun += u32::from(attempt.is_ok());
        }
        assert_eq!(begun, 100);
    }
}
