//! Sums of the last minute or hour, by what is limited and by peer. A sum is that of the present period, and of the
//! former one as far as it is still within the window, as if its mail had been spread evenly.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use crate::peer::{Peer, PeerNetwork};

/// Addresses, and pairs of an address and a network, that are counted in a period at most. Beyond it new ones are
/// limited by their tenant only.
const ADDRESSES_MAX: usize = 100_000;
/// All pairs that are counted in a period at most. Beyond it new ones are limited by the total only.
const PAIRS_MAX: usize = 200_000;

/// What is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum RateScope {
    /// A tenant; `None`: all mail without one.
    Tenant(Option<Uuid>),
    /// An address, by its key.
    Address(Uuid),
}

/// A limit of the sum in a window.
#[derive(Debug, Clone, Copy)]
pub(super) struct WindowLimit {
    /// Of all peers together.
    pub(super) total: u64,
    /// Of a peer: an IPv4 address or a /64. A /56 has twice as much, a /48 four times.
    pub(super) per_peer: u64,
}

/// Which limit is exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RateExceeded {
    /// That of the peer.
    PerPeer,
    /// That of all peers, and the peer has more than an equal share of it.
    Total,
}

/// The sums of a window.
#[derive(Debug)]
pub(super) struct Window {
    period: Duration,
    began: Instant,
    present: Sums,
    former: Sums,
}

/// The sums of a period.
#[derive(Debug, Default)]
struct Sums {
    by_scope: HashMap<RateScope, ScopeSum>,
    by_network: HashMap<(RateScope, PeerNetwork), u64>,
}

#[derive(Debug, Default, Clone, Copy)]
struct ScopeSum {
    total: u64,
    /// Peers that are counted, by their widest network.
    peers: u64,
}

impl Window {
    /// A window of this length.
    pub(super) fn new(period: Duration) -> Self {
        Self { period, began: Instant::now(), present: Sums::default(), former: Sums::default() }
    }

    /// Checks whether `peer` may add `amount` to `scope`.
    ///
    /// # Errors
    /// The limit that it would exceed.
    pub(super) fn check(
        &mut self,
        scope: RateScope,
        peer: Peer,
        amount: u64,
        limit: WindowLimit,
    ) -> Result<(), RateExceeded> {
        self.advance();
        for (network, times) in peer.networks() {
            let sum = self.sum(|sums| sums.of_network(scope, network));
            if sum.saturating_add(amount) > limit.per_peer.saturating_mul(times as u64) {
                return Err(RateExceeded::PerPeer);
            }
        }
        if self.sum(|sums| sums.of_scope(scope).total).saturating_add(amount) <= limit.total {
            return Ok(());
        }
        let own = self.sum(|sums| sums.of_network(scope, peer.widest()));
        let peers = self.peers(scope) + u64::from(own == 0);
        if own.saturating_add(amount) <= limit.total / peers.max(1) {
            Ok(())
        } else {
            Err(RateExceeded::Total)
        }
    }

    /// Adds what `peer` sent.
    pub(super) fn add(&mut self, scope: RateScope, peer: Peer, amount: u64) {
        self.advance();
        self.present.add(scope, peer, amount);
    }

    /// Begins a new period where the present one is over.
    fn advance(&mut self) {
        let age = self.began.elapsed();
        if age < self.period {
            return;
        }
        let ended = std::mem::take(&mut self.present);
        let periods = u32::try_from(age.as_nanos() / self.period.as_nanos().max(1)).unwrap_or(u32::MAX);
        self.former = if periods == 1 { ended } else { Sums::default() };
        self.began += self.period.saturating_mul(periods);
    }

    /// The sum in the window.
    fn sum(&self, of: impl Fn(&Sums) -> u64) -> u64 {
        let left = self.period.saturating_sub(self.began.elapsed());
        let weighted = u128::from(of(&self.former)) * left.as_millis() / self.period.as_millis().max(1);
        of(&self.present).saturating_add(u64::try_from(weighted).unwrap_or(u64::MAX))
    }

    /// Peers that sent anything, at least.
    fn peers(&self, scope: RateScope) -> u64 {
        self.present.of_scope(scope).peers.max(self.former.of_scope(scope).peers)
    }
}

impl Sums {
    fn of_scope(&self, scope: RateScope) -> ScopeSum {
        self.by_scope.get(&scope).copied().unwrap_or_default()
    }

    fn of_network(&self, scope: RateScope, network: PeerNetwork) -> u64 {
        self.by_network.get(&(scope, network)).copied().unwrap_or(0)
    }

    fn add(&mut self, scope: RateScope, peer: Peer, amount: u64) {
        let max = if matches!(scope, RateScope::Address(_)) { ADDRESSES_MAX } else { PAIRS_MAX };
        if self.by_scope.len() >= max && !self.by_scope.contains_key(&scope) {
            return;
        }
        let mut sum = self.of_scope(scope);
        sum.total = sum.total.saturating_add(amount);
        for (network, _) in peer.networks() {
            let is_full = self.by_network.len() >= max;
            match self.by_network.get_mut(&(scope, network)) {
                Some(sum) => *sum = sum.saturating_add(amount),
                None if is_full => {}
                None => {
                    sum.peers += u64::from(network == peer.widest());
                    self.by_network.insert((scope, network), amount);
                }
            }
        }
        self.by_scope.insert(scope, sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const TENANT: RateScope = RateScope::Tenant(None);

    fn peer(number: u8) -> Peer {
        Peer::new([192, 0, 2, number].into())
    }

    /// Adds if the limit allows it.
    fn send(window: &mut Window, peer: Peer, amount: u64, limit: WindowLimit) -> Result<(), RateExceeded> {
        window.check(TENANT, peer, amount, limit)?;
        window.add(TENANT, peer, amount);
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn limits_a_peer_in_a_window_that_slides() {
        let limit = WindowLimit { total: 1_000, per_peer: 100 };
        let mut window = Window::new(MINUTE);
        assert_eq!(send(&mut window, peer(1), 100, limit), Ok(()));
        assert_eq!(send(&mut window, peer(1), 1, limit), Err(RateExceeded::PerPeer));
        assert_eq!(send(&mut window, peer(2), 100, limit), Ok(()));
        tokio::time::advance(MINUTE + MINUTE / 2).await;
        assert_eq!(send(&mut window, peer(1), 51, limit), Err(RateExceeded::PerPeer));
        assert_eq!(send(&mut window, peer(1), 50, limit), Ok(()));
        tokio::time::advance(MINUTE * 3).await;
        assert_eq!(send(&mut window, peer(1), 100, limit), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn defers_those_with_more_than_an_equal_share_of_a_total() {
        let limit = WindowLimit { total: 100, per_peer: 80 };
        let mut window = Window::new(MINUTE);
        assert_eq!(send(&mut window, peer(1), 80, limit), Ok(()));
        assert_eq!(send(&mut window, peer(2), 20, limit), Ok(()));
        assert_eq!(send(&mut window, peer(3), 33, limit), Ok(()));
        assert_eq!(send(&mut window, peer(3), 1, limit), Err(RateExceeded::Total));
        assert_eq!(send(&mut window, peer(2), 13, limit), Ok(()));
        assert_eq!(send(&mut window, peer(2), 1, limit), Err(RateExceeded::Total));
        assert_eq!(window.check(RateScope::Tenant(Some(Uuid::nil())), peer(1), 80, limit), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_network_of_ipv6_has_two_or_four_shares() {
        let limit = WindowLimit { total: 1_000, per_peer: 10 };
        let mut window = Window::new(MINUTE);
        let mut send = |address: &str| send(&mut window, Peer::new(address.parse().unwrap()), 10, limit);
        assert_eq!(send("2001:db8:0:100::1"), Ok(()));
        assert_eq!(send("2001:db8:0:100::2"), Err(RateExceeded::PerPeer));
        assert_eq!(send("2001:db8:0:101::1"), Ok(()));
        assert_eq!(send("2001:db8:0:102::1"), Err(RateExceeded::PerPeer));
        assert_eq!(send("2001:db8:0:200::1"), Ok(()));
        assert_eq!(send("2001:db8:0:300::1"), Ok(()));
        assert_eq!(send("2001:db8:0:400::1"), Err(RateExceeded::PerPeer));
        assert_eq!(send("2001:db8:1:400::1"), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn counts_a_bounded_number_of_addresses() {
        let limit = WindowLimit { total: 1, per_peer: 1 };
        let mut window = Window::new(MINUTE);
        for number in 0..ADDRESSES_MAX as u128 + 10 {
            window.add(RateScope::Address(Uuid::from_u128(number)), peer(1), 1);
        }
        assert_eq!(window.present.by_scope.len(), ADDRESSES_MAX);
        let address = RateScope::Address(Uuid::from_u128(0));
        assert_eq!(window.check(address, peer(1), 1, limit), Err(RateExceeded::PerPeer));
    }
}
