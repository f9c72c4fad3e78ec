//! Limits on requests: on `/api` per client, on `/v1` and `/pro/api` per token, on creating mailboxes
//! per client, and on failed sign-ins. They apply before any hashing, and use real time, not business
//! time.

mod headers;

use std::time::Duration;

use tempmail_bus::{Attempt, FailureLimit, RateDecision, RateKey, RateLimit, SharedBus};
use tempmail_model::limits::Limits;
use uuid::Uuid;

use super::client::Client;
use super::error::ApiError;

pub(crate) use headers::RateLimitHeaders;

/// Window of failed sign-ins.
const SIGN_IN_WINDOW: Duration = Duration::from_secs(15 * 60);

/// All limits of one API server, shared with the other servers over the bus; their memory is bounded.
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
        let per_client = limits.sign_in_failures_per_client;
        Self {
            bus,
            api: RateLimit::new("api", limits.api_per_second, second),
            tokens: RateLimit::new("v1", limits.v1_per_second, second),
            pro_tokens: RateLimit::new("pro", limits.pro_per_second, second),
            free_mailboxes: RateLimit::new("free-mailboxes", limits.free_mailboxes_per_hour, hour),
            sign_in: FailureLimit::new("sign-in", limits.sign_in_failures, SIGN_IN_WINDOW),
            sign_in_client: FailureLimit::new("sign-in-client", per_client, SIGN_IN_WINDOW),
        }
    }

    /// Counts a request on `/api`; `None` where the client has no limit.
    pub(crate) async fn count_client(&self, client: Client) -> Option<RateDecision> {
        self.count_for_client(&self.api, client).await
    }

    /// Counts a request of a live token.
    pub(crate) async fn count_live_token(&self, token: Uuid) -> RateDecision {
        self.bus.check_rate(&self.tokens, token.into()).await
    }

    /// Counts a request of a Pro token on `/pro/api`, or of one of its sessions.
    pub(crate) async fn count_pro_token(&self, token: Uuid) -> RateDecision {
        self.bus.check_rate(&self.pro_tokens, token.into()).await
    }

    /// Counts an attempt to create a mailbox without a Pro token.
    pub(crate) async fn count_free_mailbox(&self, client: Client) -> Option<RateDecision> {
        self.count_for_client(&self.free_mailboxes, client).await
    }

    async fn count_for_client(&self, limit: &RateLimit, client: Client) -> Option<RateDecision> {
        if client.unlimited {
            return None;
        }
        Some(self.bus.check_rate(limit, client.key.into()).await)
    }

    /// Begins a sign-in, which counts as failed until [`SignInAttempt::record_success`]: so concurrent
    /// attempts can't exceed the limit.
    ///
    /// # Errors
    /// [`ApiError::RateLimitExceeded`] where too many sign-ins failed.
    pub(crate) async fn begin_sign_in(
        &self,
        address: &str,
        client: Client,
    ) -> Result<SignInAttempt<'_>, ApiError> {
        let attempt = self.attempt_sign_in(address, client).await;
        attempt.map_err(|retry_after| ApiError::RateLimitExceeded { retry_after })
    }

    async fn attempt_sign_in(&self, address: &str, client: Client) -> Result<SignInAttempt<'_>, Duration> {
        if client.unlimited {
            return Ok(SignInAttempt { by_client: None, by_address: None });
        }
        let by_client = self.bus.begin_attempt(&self.sign_in_client, client.key.into()).await?;
        let address_and_client =
            RateKey::from_parts(&[address.as_bytes(), RateKey::from(client.key).as_uuid().as_bytes()]);
        match self.bus.begin_attempt(&self.sign_in, address_and_client).await {
            Ok(by_address) => Ok(SignInAttempt { by_client: Some(by_client), by_address: Some(by_address) }),
            Err(wait) => {
                // The password was not checked: only the limit of the address counts.
                by_client.record_success().await;
                Err(wait)
            }
        }
    }
}

/// A sign-in in progress.
pub(crate) struct SignInAttempt<'a> {
    by_client: Option<Attempt<'a>>,
    by_address: Option<Attempt<'a>>,
}

impl SignInAttempt<'_> {
    /// Takes the attempt back from the counts of failures.
    pub(crate) async fn record_success(self) {
        for attempt in self.by_client.into_iter().chain(self.by_address) {
            attempt.record_success().await;
        }
    }
}

/// Turns a decision of a limit into the answer of a request that exceeds it.
///
/// # Errors
/// [`ApiError::RateLimitExceeded`].
pub(crate) fn enforce(decision: RateDecision) -> Result<(), ApiError> {
    if decision.allowed {
        Ok(())
    } else {
        Err(ApiError::RateLimitExceeded { retry_after: decision.retry_after })
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
            assert!(limits.begin_sign_in("a@b.example", one).await.is_ok());
        }
        assert!(limits.begin_sign_in("a@b.example", one).await.is_err());
        assert!(limits.begin_sign_in("c@b.example", one).await.is_ok());
        assert!(limits.begin_sign_in("a@b.example", two).await.is_ok());
    }

    #[tokio::test]
    async fn does_not_count_successes_nor_unlimited_clients() {
        let limits = limits();
        for _ in 0..300 {
            limits.begin_sign_in("a@b.example", client("192.0.2.1")).await.unwrap().record_success().await;
            assert!(limits.begin_sign_in("a@b.example", client("127.0.0.1")).await.is_ok());
            assert!(limits.count_client(client("127.0.0.1")).await.is_none());
        }
    }

    #[tokio::test]
    async fn limits_failed_sign_ins_per_client_over_all_addresses() {
        let limits = limits();
        let mut begun = 0;
        for i in 0..200 {
            let attempt = limits.begin_sign_in(&format!("a{i}@b.example"), client("192.0.2.1")).await;
            begun += u32::from(attempt.is_ok());
        }
        assert_eq!(begun, 100);
    }
}
