//! Requests that nobody may make: without a credential that they need, or with one that is not accepted.
//!
//! They are counted after the fact, by the networks of the client, in each process by itself. Above the limit a refused
//! request is answered 429, and one that may become one waits for its turn in the store. A request that is accepted is
//! never counted, and never refused for those that are.

use std::time::Duration;

use tempmail_admission::ClientNetwork;
use tempmail_bus::{RateDecision, RateLimit};

use super::{MINUTE, PerNetwork};
use crate::http::client::Client;
use crate::http::expiring_set::ExpiringSet;

/// How long a network is suspect after a request above the limit, at least.
const SUSPECT: Duration = Duration::from_secs(1);
/// Networks that may be suspect at a time.
const SUSPECTS_MAX: usize = 10_000;

/// The refused requests of all clients; see the module.
pub(super) struct RefusedRequests {
    limits: PerNetwork<RateLimit>,
    suspects: ExpiringSet<ClientNetwork>,
}

impl RefusedRequests {
    /// A client may make so many a minute.
    pub(super) fn new(per_minute: u32) -> Self {
        let limits =
            PerNetwork::new(|times| RateLimit::new("refused", per_minute.saturating_mul(times), MINUTE));
        Self { limits, suspects: ExpiringSet::new(SUSPECTS_MAX) }
    }

    /// Counts one; the decision where one of the client's networks has made too many.
    pub(super) fn count(&self, client: Client) -> Option<RateDecision> {
        for (limit, network) in self.limits.of(client) {
            let decision = limit.check(network.into());
            if !decision.allowed {
                self.suspects.insert(network, decision.retry_after.max(SUSPECT));
                return Some(decision);
            }
        }
        None
    }

    /// Whether one of the client's networks has made too many.
    pub(super) fn is_suspect(&self, client: Client) -> bool {
        client.networks().any(|(network, _)| self.suspects.contains(&network))
    }
}

#[cfg(test)]
mod tests {
    use tempmail_runtime::config::Http;

    use super::*;
    use crate::http::client::ClientResolver;

    fn client(address: &str) -> Client {
        let http = Http { unlimited_networks: vec!["127.0.0.0/8".parse().unwrap()], ..Http::default() };
        ClientResolver::new(&http).of_connection(address.parse().unwrap())
    }

    #[tokio::test]
    async fn limits_a_client_and_no_other() {
        let refused = RefusedRequests::new(10);
        for _ in 0..10 {
            assert!(refused.count(client("192.0.2.1")).is_none());
            assert!(refused.count(client("127.0.0.1")).is_none());
        }
        assert!(!refused.is_suspect(client("192.0.2.1")));
        assert!(refused.count(client("192.0.2.1")).is_some() && refused.is_suspect(client("192.0.2.1")));
        assert!(refused.count(client("192.0.2.2")).is_none() && !refused.is_suspect(client("192.0.2.2")));
        assert!(refused.count(client("127.0.0.1")).is_none() && !refused.is_suspect(client("127.0.0.1")));
    }

    #[tokio::test]
    async fn limits_the_56_and_the_48_of_a_client() {
        let refused = RefusedRequests::new(10);
        let allowed = |prefix: &str| {
            let requests = (0..1_000).map(|n| client(&format!("{prefix}{n:x}::1")));
            requests.filter(|client| refused.count(*client).is_none()).count()
        };
        // The 256 clients of a /56, and a thousand of a /48, in four /56. A busy machine may take its time.
        let of_56 = (0..256).map(|n| client(&format!("2001:db8:0:{n:x}::1")));
        assert!((20..30).contains(&of_56.filter(|client| refused.count(*client).is_none()).count()));
        assert!((40..60).contains(&allowed("2001:db8:1:")));
        while refused.count(client("2001:db8:1:ffff::1")).is_none() {}
        assert!(refused.is_suspect(client("2001:db8:1:ff00::1")));
        assert!(!refused.is_suspect(client("2001:db8:2::1")));
    }
}
