//! Slows down peers that guess addresses. So many unknown recipients a minute are rejected to a peer at once; further
//! rejections wait for their turn. Recipients that exist are never delayed.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tempmail_admission::{Client, ClientNetwork};
use tokio::time::Instant;

/// The time in which the whole allowance of a peer returns, and that may be used at once.
const WINDOW: Duration = Duration::from_secs(60);
/// Longest delay of a reply; clients wait for it for 5 minutes (RFC 5321 4.5.3.2.3).
const DELAY_MAX: Duration = Duration::from_secs(60);
/// Networks that are remembered; beyond it those are forgotten that owe the least.
const NETWORKS_MAX: usize = 100_000;

/// The delays of a process, by the generic cell rate algorithm.
#[derive(Debug)]
pub(crate) struct RejectionDelay {
    per_minute: u32,
    /// When the whole allowance of a network is available again.
    available: Mutex<HashMap<ClientNetwork, Instant>>,
}

/// The replies would be delayed for longer than a client waits: they must not be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooManyRejections;

impl RejectionDelay {
    /// Delays the rejections of a peer beyond `per_minute`: of an IPv4 address or a /64. A /56 may have twice as
    /// many, a /48 four times.
    pub(crate) fn new(per_minute: u32) -> Self {
        Self { per_minute: per_minute.max(1), available: Mutex::default() }
    }

    /// Counts rejections of a peer, and returns how long their replies have to wait.
    ///
    /// # Errors
    /// [`TooManyRejections`]; nothing is counted.
    pub(crate) fn reserve(&self, peer: Client, rejections: u32) -> Result<Duration, TooManyRejections> {
        let now = Instant::now();
        let mut available = self.available.lock().unwrap_or_else(PoisonError::into_inner);
        let after = |(network, times): (ClientNetwork, u32)| {
            let time = WINDOW.saturating_mul(rejections) / self.per_minute.saturating_mul(times);
            let before = available.get(&network).copied().unwrap_or(now);
            (network, before.max(now) + time)
        };
        let reserved: Vec<(ClientNetwork, Instant)> = peer.networks().map(after).collect();
        let longest = reserved.iter().map(|(_, at)| at.duration_since(now)).max().unwrap_or_default();
        let delay = longest.saturating_sub(WINDOW);
        if delay > DELAY_MAX {
            return Err(TooManyRejections);
        }
        available.extend(reserved);
        if available.len() > NETWORKS_MAX {
            forget(&mut available, now);
        }
        Ok(delay)
    }
}

/// Removes the networks that owe nothing and, if those are few, half of the others.
fn forget(available: &mut HashMap<ClientNetwork, Instant>, now: Instant) {
    available.retain(|_, at| *at > now);
    if available.len() > NETWORKS_MAX / 2 {
        let mut all: Vec<Instant> = available.values().copied().collect();
        let middle = all.len() / 2;
        let (_, median, _) = all.select_nth_unstable(middle);
        let median = *median;
        available.retain(|_, at| *at > median);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> Client {
        Client::Address(address.parse().unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn delays_rejections_beyond_those_of_a_minute() {
        let delay = RejectionDelay::new(60);
        let guess = |address: &str, count| delay.reserve(peer(address), count);
        assert_eq!(guess("192.0.2.1", 60), Ok(Duration::ZERO));
        assert_eq!(guess("192.0.2.1", 1), Ok(Duration::from_secs(1)));
        assert_eq!(guess("192.0.2.1", 20), Ok(Duration::from_secs(21)));
        assert_eq!(guess("192.0.2.1", 40), Err(TooManyRejections));
        assert_eq!(guess("192.0.2.1", 39), Ok(Duration::from_secs(60)));
        assert_eq!(guess("192.0.2.1", 1), Err(TooManyRejections));
        assert_eq!(guess("192.0.2.2", 60), Ok(Duration::ZERO), "another peer");
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(guess("192.0.2.1", 1), Ok(Duration::from_secs(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn counts_the_networks_of_an_ipv6_address() {
        let delay = RejectionDelay::new(60);
        let guess = |address: &str, count| delay.reserve(peer(address), count);
        for host in ["2001:db8:0:100::1", "2001:db8:0:101::1"] {
            assert_eq!(guess(host, 60), Ok(Duration::ZERO));
        }
        assert_eq!(guess("2001:db8:0:102::1", 60), Ok(Duration::from_secs(30)), "the /56 has two shares");
        assert_eq!(guess("2001:db8:0:200::1", 60), Ok(Duration::ZERO));
        assert_eq!(guess("2001:db8:0:300::1", 4), Ok(Duration::from_secs(1)), "the /48 has four shares");
    }

    #[tokio::test(start_paused = true)]
    async fn remembers_a_bounded_number_of_networks() {
        let delay = RejectionDelay::new(60);
        for number in 0..u32::try_from(NETWORKS_MAX).unwrap() + 10 {
            delay.reserve(Client::Address(std::net::Ipv4Addr::from_bits(number).into()), 1).unwrap();
        }
        assert!(delay.available.lock().unwrap().len() <= NETWORKS_MAX);
    }
}
