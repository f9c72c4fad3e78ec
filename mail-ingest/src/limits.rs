//! How many connections there may be: in all, and of one peer (an IPv4 address, or the /64 of
//! an IPv6 address).

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use ipnet::IpNet;

/// Counts the connections of a pod. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ConnectionLimits(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    most: usize,
    most_per_peer: usize,
    unlimited: Vec<IpNet>,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    all: usize,
    by_peer: HashMap<IpAddr, usize>,
}

/// The place of one connection; free again when dropped.
#[derive(Debug)]
pub struct Place {
    limits: ConnectionLimits,
    peer: Option<IpAddr>,
}

impl ConnectionLimits {
    /// `most` in all, and `most_per_peer` of each peer that is not in `unlimited`.
    pub fn new(most: usize, most_per_peer: usize, unlimited: Vec<IpNet>) -> Self {
        Self(Arc::new(Shared { most, most_per_peer, unlimited, open: Mutex::default() }))
    }

    /// A place for a connection from `address`; `None` where there is none left.
    pub fn admit(&self, address: IpAddr) -> Option<Place> {
        let address = address.to_canonical();
        let unlimited = self.0.unlimited.iter().any(|network| network.contains(&address));
        let peer = (!unlimited).then(|| peer_of(address));
        let mut open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.all >= self.0.most {
            return None;
        }
        if let Some(peer) = peer {
            let of_peer = open.by_peer.entry(peer).or_default();
            if *of_peer >= self.0.most_per_peer {
                return None;
            }
            *of_peer += 1;
        }
        open.all += 1;
        Some(Place { limits: self.clone(), peer })
    }

    /// Connections that are open now.
    pub fn open(&self) -> usize {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner).all
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.limits.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.all -= 1;
        let Some(peer) = self.peer else { return };
        if let Some(of_peer) = open.by_peer.get_mut(&peer) {
            *of_peer -= 1;
            if *of_peer == 0 {
                open.by_peer.remove(&peer);
            }
        }
    }
}

/// What counts as one peer.
fn peer_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_all_and_by_peer() {
        let limits = ConnectionLimits::new(5, 2, vec!["127.0.0.0/8".parse().unwrap()]);
        let admit = |address: &str| limits.admit(address.parse().unwrap());
        let first = admit("192.0.2.1").unwrap();
        let _second = admit("::ffff:192.0.2.1").unwrap();
        assert!(admit("192.0.2.1").is_none());
        drop(first);
        let _third = admit("192.0.2.1").unwrap();
        let _v6 = [admit("2001:db8::1").unwrap(), admit("2001:db8::ffff:1").unwrap()];
        assert!(admit("2001:db8::2").is_none());
        let _other = admit("127.0.0.1").unwrap();
        assert_eq!(limits.open(), 5);
        assert!(admit("127.0.0.2").is_none(), "no place at all");
    }

    #[test]
    fn places_come_back() {
        let limits = ConnectionLimits::new(10, 10, Vec::new());
        let places: Vec<_> = (0..10).map(|_| limits.admit("2001:db8::1".parse().unwrap()).unwrap()).collect();
        drop(places);
        assert_eq!(limits.open(), 0);
        assert!(limits.0.open.lock().unwrap().by_peer.is_empty());
    }
}
