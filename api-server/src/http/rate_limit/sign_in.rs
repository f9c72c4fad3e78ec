//! Attempts to sign in, which count as failed until it is known that they did not.

use std::time::Duration;

use tempmail_bus::{Attempt, FailureLimit, RateKey, SharedBus};
use tempmail_model::limits::Limits;
use tokio::runtime::Handle;

use super::MINUTE;
use crate::http::client::Client;
use crate::http::error::ApiError;

const QUARTER_OF_AN_HOUR: Duration = Duration::from_secs(15 * 60);

/// How many sign-ins may fail.
pub(super) struct SignInLimits {
    by_address: FailureLimit,
    by_client: FailureLimit,
    by_client_and_minute: FailureLimit,
}

impl SignInLimits {
    pub(super) fn new(limits: &Limits) -> Self {
        let per_client = limits.sign_in_failures_per_client;
        let per_minute = limits.sign_in_failures_per_minute;
        Self {
            by_address: FailureLimit::new("sign-in", limits.sign_in_failures, QUARTER_OF_AN_HOUR),
            by_client: FailureLimit::new("sign-in-client", per_client, QUARTER_OF_AN_HOUR),
            by_client_and_minute: FailureLimit::new("sign-in-client-minute", per_minute, MINUTE),
        }
    }

    /// Counts an attempt by client, and by address and client.
    pub(super) async fn begin(
        &self,
        bus: &SharedBus,
        address: &str,
        client: Client,
    ) -> Result<SignInAttempt, ApiError> {
        let mut attempt = SignInAttempt { counted: Vec::new(), runtime: Handle::current() };
        if client.unlimited {
            return Ok(attempt);
        }
        let client_key = RateKey::from(client.origin.narrowest());
        let address_key = RateKey::from_parts(&[address.as_bytes(), client_key.as_uuid().as_bytes()]);
        for (limit, key, name) in [
            (&self.by_client, client_key, "sign_in_client"),
            (&self.by_client_and_minute, client_key, "sign_in_client"),
            (&self.by_address, address_key, "sign_in_address"),
        ] {
            match bus.begin_attempt(limit, key).await {
                Ok(counted) => attempt.counted.push(counted),
                Err(retry_after) => {
                    attempt.uncount().await;
                    return Err(ApiError::RateLimitExceeded { retry_after, limit: name, decision: None });
                }
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
    for attempt in counted {
        attempt.uncount().await;
    }
}
