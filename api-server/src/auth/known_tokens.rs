//! What was lately found out about credentials, so that a flood of wrong ones costs the store little. It gives nobody
//! a right: a credential that may be good is judged by the store each time.

use std::time::Duration;

use tempmail_bus::RateKey;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::http::client::Client;
use crate::http::expiring_set::ExpiringSet;
use crate::http::rate_limit::RequestLimits;

/// How long an unknown token counts as unknown.
const UNKNOWN_FOR: Duration = Duration::from_secs(1);
/// How long a credential that was accepted needs to wait for no turn.
const ACCEPTED_FOR: Duration = Duration::from_secs(10 * 60);
/// Keys of each set.
const KEYS_MAX: usize = 10_000;
/// Credentials of suspect clients that the store judges at a time.
const TURNS: usize = 2;

/// See the module.
pub(super) struct KnownTokens {
    unknown: ExpiringSet<RateKey>,
    accepted: ExpiringSet<RateKey>,
    turns: Semaphore,
}

impl KnownTokens {
    pub(super) fn new() -> Self {
        Self {
            unknown: ExpiringSet::new(KEYS_MAX),
            accepted: ExpiringSet::new(KEYS_MAX),
            turns: Semaphore::new(TURNS),
        }
    }

    /// Whether the store had no such token within the last second.
    pub(super) fn is_unknown(&self, credential: RateKey) -> bool {
        self.unknown.contains(&credential)
    }

    /// Records that the store has no such token.
    pub(super) fn record_unknown(&self, credential: RateKey) {
        self.unknown.insert(credential, UNKNOWN_FOR);
    }

    /// Records that a credential was accepted.
    pub(super) fn record_accepted(&self, credential: RateKey) {
        self.accepted.insert(credential, ACCEPTED_FOR);
    }

    /// Waits until the store may judge a credential. Only those wait that come from a suspect client and were not
    /// accepted lately; they take turns, and none is refused.
    pub(super) async fn turn(
        &self,
        limits: &RequestLimits,
        client: Client,
        credential: RateKey,
    ) -> Option<SemaphorePermit<'_>> {
        if !limits.is_suspect(client) || self.accepted.contains(&credential) {
            return None;
        }
        // The semaphore is never closed.
        self.turns.acquire().await.ok()
    }
}
