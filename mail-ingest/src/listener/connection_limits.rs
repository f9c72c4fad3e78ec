//! The limits of connections: in all, and per peer (an IPv4 address, or the /64 of an IPv6 address).

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ipnet::IpNet;

/// Counts and limits the connections of a process. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionLimits(Arc<LimitState>);

#[derive(Debug)]
struct LimitState {
    max: usize,
    max_per_peer: usize,
    unlimited: Vec<IpNet>,
    open: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    total: usize,
    by_peer: HashMap<IpAddr, usize>,
}

/// The permit of one connection; released on drop.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    limits: ConnectionLimits,
    /// `None` where the connection does not count towards the limit of a peer.
    peer: Option<IpAddr>,
}

impl ConnectionLimits {
    /// At most `max` connections, and `max_per_peer` of each peer that is not in `unlimited`.
    pub(crate) fn new(max: usize, max_per_peer: usize, unlimited: Vec<IpNet>) -> Self {
        Self(Arc::new(LimitState { max, max_per_peer, unlimited, open: Mutex::default() }))
    }

    /// A permit for a connection from `address`; `None` if a limit is reached.
    pub(super) fn acquire(&self, address: IpAddr) -> Option<ConnectionPermit> {
        let address = address.to_canonical();
        let mut permit = self.acquire_for_proxy()?;
        let unlimited = self.0.unlimited.iter().any(|network| network.contains(&address));
        (unlimited || permit.count_for(address)).then_some(permit)
    }

    /// A permit for a connection from a load balancer, whose client is not known yet; `None` if the limit of all
    /// connections is reached.
    pub(super) fn acquire_for_proxy(&self) -> Option<ConnectionPermit> {
        let mut open = self.lock();
        if open.total >= self.0.max {
            return None;
        }
        open.total += 1;
        Some(ConnectionPermit { limits: self.clone(), peer: None })
    }

    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    fn open(&self) -> usize {
        self.0.open.lock().unwrap().total
    }
}

impl ConnectionPermit {
    /// Counts the connection towards the limit of the peer `address`; `false` if that is reached.
    pub(super) fn count_for(&mut self, address: IpAddr) -> bool {
        let peer = peer_network(address);
        let mut open = self.limits.lock();
        let count = open.by_peer.entry(peer).or_default();
        if *count >= self.limits.0.max_per_peer {
            return false;
        }
        *count += 1;
        drop(open);
        self.peer = Some(peer);
        true
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut open = self.limits.lock();
        open.total -= 1;
        let Some(peer) = self.peer else { return };
        if let Some(count) = open.by_peer.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                open.by_peer.remove(&peer);
            }
        }
    }
}

/// The address, or the network of an IPv6 address, that counts as one peer.
fn peer_network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_connections_in_all_and_per_peer() {
        let limits = ConnectionLimits::new(5, 2, vec!["127.0.0.0/8".parse().unwrap()]);
        let acquire = |address: &str| limits.acquire(address.parse().unwrap());
        let first = acquire("192.0.2.1").unwrap();
        let _second = acquire("::ffff:192.0.2.1").unwrap();
        assert!(acquire("192.0.2.1").is_none());
        drop(first);
        let _third = acquire("192.0.2.1").unwrap();
        let _v6 = [acquire("2001:db8::1").unwrap(), acquire("2001:db8::ffff:1").unwrap()];
        assert!(acquire("2001:db8::2").is_none());
        let _other = acquire("127.0.0.1").unwrap();
        assert_eq!(limits.open(), 5);
        assert!(acquire("127.0.0.2").is_none(), "the total limit holds for all peers");
    }

    #[test]
    fn releases_permits_on_drop() {
        let limits = ConnectionLimits::new(10, 10, Vec::new());
        let permits: Vec<_> =
            (0..10).map(|_| limits.acquire("2001:db8::1".parse().unwrap()).unwrap()).collect();
        drop(permits);
        assert_eq!(limits.open(), 0);
        assert!(limits.0.open.lock().unwrap().by_peer.is_empty());
    }

    #[test]
    fn counts_a_client_behind_a_load_balancer_as_a_peer_that_is_never_exempt() {
        let limits = ConnectionLimits::new(5, 1, vec!["192.0.2.0/24".parse().unwrap()]);
        let client: IpAddr = "192.0.2.1".parse().unwrap();
        let mut first = limits.acquire_for_proxy().unwrap();
        let mut second = limits.acquire_for_proxy().unwrap();
        assert!(first.count_for(client));
        assert!(!second.count_for(client));
        drop(first);
        assert!(second.count_for(client));
        drop(second);
        assert_eq!(limits.open(), 0);
        assert!(limits.0.open.lock().unwrap().by_peer.is_empty());
    }
}
