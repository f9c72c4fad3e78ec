//! Attempts to sign in, which count as failed until it is known that they did not.

use std::time::Duration;

use futures_util::future::join_all;
use tempmail_bus::{Attempt, FailureLimit, RateKey, SharedBus};
use tempmail_runtime::config::Limits;
use tokio::runtime::Handle;

use super::{MINUTE, PerNetwork};
use crate::http::client::Client;
use crate::http::error::ApiError;

const QUARTER_OF_AN_HOUR: Duration = Duration::from_secs(15 * 60);

/// How many sign-ins may fail, for each network of a client.
pub(super) struct SignInLimits(PerNetwork<NetworkLimits>);

/// How many may fail in a network.
struct NetworkLimits {
    by_address: FailureLimit,
    in_all: FailureLimit,
    in_all_of_minute: FailureLimit,
}

impl SignInLimits {
    pub(super) fn new(limits: &Limits) -> Self {
        Self(PerNetwork::new(|times| {
            let limit =
                |name, of_one: u32, window| FailureLimit::new(name, of_one.saturating_mul(times), window);
            let (of_client, of_minute) =
                (limits.sign_in_failures_per_client, limits.sign_in_failures_per_minute);
            NetworkLimits {
                by_address: limit("sign-in", limits.sign_in_failures, QUARTER_OF_AN_HOUR),
                in_all: limit("sign-in-client", of_client, QUARTER_OF_AN_HOUR),
                in_all_of_minute: limit("sign-in-client-minute", of_minute, MINUTE),
            }
        }))
    }

    /// Counts an attempt by client, and by address and client. A network whose attempt is refused does not count it in wider
    /// ones.
    pub(super) async fn begin(
        &self,
        bus: &SharedBus,
        address: &str,
        client: Client,
    ) -> Result<SignInAttempt, ApiError> {
        let mut attempt = SignInAttempt { counted: Vec::new(), runtime: Handle::current() };
        for (limits, network) in self.0.of(client) {
            let of_address = RateKey::from_parts(&[address.as_bytes(), &network.to_bytes()]);
            let limits = [
                (&limits.in_all, network.into(), "sign_in_client"),
                (&limits.in_all_of_minute, network.into(), "sign_in_client"),
                (&limits.by_address, of_address, "sign_in_address"),
            ];
            // In one round trip.
            let begun = join_all(limits.map(|(limit, key, _)| bus.begin_attempt(limit, key))).await;
            let mut refused = None;
            for (begun, (.., limit)) in begun.into_iter().zip(limits) {
                match begun {
                    Ok(counted) => attempt.counted.push(counted),
                    Err(retry_after) => refused = refused.or(Some((retry_after, limit))),
                }
            }
            if let Some((retry_after, limit)) = refused {
                attempt.uncount().await;
                return Err(ApiError::RateLimitExceeded { retry_after, limit, decision: None });
            }
        }
        Ok(attempt)
    }
}

/// A sign-in in progress. It counts as failed; dropping it gives it back, since the password was not checked then.
pub(crate) struct SignInAttempt {
    /// Empty where the client has no limits.
    counted: Vec<Attempt>,
    runtime: Handle,
}

impl SignInAttempt {
    /// Leaves it counted: the password was wrong.
    pub(crate) fn keep(mut self) {
        self.counted.clear();
    }

    /// Gives it back, and returns when it is not counted any more: the password was right, or the fault is ours.
    pub(crate) async fn uncount(mut self) {
        uncount(std::mem::take(&mut self.counted)).await;
    }
}

impl Drop for SignInAttempt {
    fn drop(&mut self) {
        if !self.counted.is_empty() {
            self.runtime.spawn(uncount(std::mem::take(&mut self.counted)));
        }
    }
}

async fn uncount(counted: Vec<Attempt>) {
    join_all(counted.into_iter().map(Attempt::uncount)).await;
}
