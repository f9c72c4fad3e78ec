//! Limits on requests: `/api` a client, `/v1` and `/pro/api` a token, creating mailboxes a client, and
//! sign-ins that fail. They come before any hashing. They go by real time, not business time.

mod failure;
mod report;

use std::time::Duration;

use tempmail_bus::{RateDecision, RateLimits};
use tempmail_model::limits::Limits;
use uuid::Uuid;

use crate::client::{Client, ClientKey};

use failure::{Attempt, Failures};
pub(crate) use report::RateReport;

/// Window of failed sign-ins.
const SIGN_IN_WINDOW: Duration = Duration::from_secs(15 * 60);

/// All limits of one API server; their memory is bounded.
pub(crate) struct RequestLimits {
    api: RateLimits<ClientKey>,
    tokens: RateLimits<Uuid>,
    pro_tokens: RateLimits<Uuid>,
    free_mailboxes: RateLimits<ClientKey>,
    sign_in: Failures<(String, ClientKey)>,
    sign_in_client: Failures<ClientKey>,
}

impl RequestLimits {
    pub(crate) fn new(limits: &Limits) -> Self {
        let second = Duration::from_secs(1);
        Self {
            api: RateLimits::new(limits.api_per_second, second),
            tokens: RateLimits::new(limits.v1_per_second, second),
            pro_tokens: RateLimits::new(limits.pro_per_second, second),
            free_mailboxes: RateLimits::new(limits.free_mailboxes_per_hour, Duration::from_secs(3600)),
            sign_in: Failures::new(limits.sign_in_failures, SIGN_IN_WINDOW),
            sign_in_client: Failures::new(limits.sign_in_failures_per_client, SIGN_IN_WINDOW),
        }
    }

    /// Counts a request on `/api`; `None` where the client has no limit.
    pub(crate) fn of_client(&self, client: Client) -> Option<RateDecision> {
        (!client.unlimited).then(|| self.api.check(&client.key))
    }

    /// Counts a request of a live token.
    pub(crate) fn of_token(&self, token: Uuid) -> RateDecision {
        self.tokens.check(&token)
    }

    /// Counts a request of a Pro token on `/pro/api`, or of a session that stands for it.
    pub(crate) fn of_pro_token(&self, token: Uuid) -> RateDecision {
        self.pro_tokens.check(&token)
    }

    /// Counts an attempt to create a mailbox without a Pro token.
    pub(crate) fn of_free_mailbox(&self, client: Client) -> Option<RateDecision> {
        (!client.unlimited).then(|| self.free_mailboxes.check(&client.key))
    }

    /// Begins a sign-in, which counts as failed until [`Attempt::succeeded`]: so attempts side
    /// by side can't pass the limit together.
    ///
    /// # Errors
    /// How long to wait, where too many failed.
    pub(crate) fn begin_sign_in(&self, address: &str, client: Client) -> Result<SignIn<'_>, Duration> {
        if client.unlimited {
            return Ok(SignIn { of_client: None, of_address: None });
        }
        let of_client = self.sign_in_client.begin(client.key)?;
        match self.sign_in.begin((address.to_owned(), client.key)) {
            Ok(of_address) => Ok(SignIn { of_client: Some(of_client), of_address: Some(of_address) }),
            Err(wait) => {
                // Refused before any look at the password: only the address is used up.
                of_client.succeeded();
                Err(wait)
            }
        }
    }
}

/// A sign-in under way.
pub(crate) struct SignIn<'a> {
    of_client: Option<Attempt<'a, ClientKey>>,
    of_address: Option<Attempt<'a, (String, ClientKey)>>,
}

impl SignIn<'_> {
    /// It did not fail: it is not counted.
    pub(crate) fn succeeded(self) {
        self.of_client.into_iter().for_each(Attempt::succeeded);
        self.of_address.into_iter().for_each(Attempt::succeeded);
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use axum::http::HeaderMap;
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

    #[test]
    fn ten_failures_an_address_and_client_then_the_others_go_on() {
        let limits = RequestLimits::new(&Limits::default());
        let (one, two) = (client("192.0.2.1"), client("192.0.2.2"));
        for _ in 0..10 {
            assert!(limits.begin_sign_in("a@b.example", one).is_ok());
        }
        assert!(limits.begin_sign_in("a@b.example", one).is_err());
        assert!(limits.begin_sign_in("c@b.example", one).is_ok());
        assert!(limits.begin_sign_in("a@b.example", two).is_ok());
    }

    #[test]
    fn successes_are_not_counted_and_unlimited_clients_never() {
        let limits = RequestLimits::new(&Limits::default());
        for _ in 0..300 {
            limits.begin_sign_in("a@b.example", client("192.0.2.1")).unwrap().succeeded();
            assert!(limits.begin_sign_in("a@b.example", client("127.0.0.1")).is_ok());
            assert!(limits.of_client(client("127.0.0.1")).is_none());
        }
    }

    #[test]
    fn a_hundred_failures_a_client_over_all_addresses() {
        let limits = RequestLimits::new(&Limits::default());
        let tries = (0..200)
            .filter(|i| limits.begin_sign_in(&format!("a{i}@b.example"), client("192.0.2.1")).is_ok());
        assert_eq!(tries.count(), 100);
    }
}
