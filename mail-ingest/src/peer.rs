//! Peers as limits count them: an IPv4 address, or three networks of an IPv6 address, since one site has a /48 of
//! its own, one home a /56 and one host a /64.

use std::net::{IpAddr, Ipv6Addr};

/// Prefix lengths of IPv6, narrowest first, each with how many times the limit of one peer the network has.
const IPV6_NETWORKS: [(u8, usize); 3] = [(64, 1), (56, 2), (48, 4)];

/// A client of SMTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Client {
    /// Its address, as trace fields name it.
    pub(crate) address: IpAddr,
    /// What limits by peer count it as; `None` if it is exempt from them (`smtp.unlimited_networks`).
    pub(crate) peer: Option<Peer>,
}

/// What limits by peer count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer(IpAddr);

/// A network that counts as one peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PeerNetwork {
    address: IpAddr,
    prefix: u8,
}

impl Peer {
    /// The peer with this address; a mapped IPv4 address is an IPv4 address.
    pub(crate) fn new(address: IpAddr) -> Self {
        Self(address.to_canonical())
    }

    /// The networks that it counts in, narrowest first, each with how many times the limit of one peer it has.
    pub(crate) fn networks(self) -> impl Iterator<Item = (PeerNetwork, usize)> {
        let (v4, v6) = match self.0 {
            IpAddr::V4(_) => (Some((PeerNetwork { address: self.0, prefix: 32 }, 1)), None),
            IpAddr::V6(address) => (None, Some(address)),
        };
        let v6 = v6.into_iter().flat_map(|address| {
            IPV6_NETWORKS.map(|(prefix, times)| (PeerNetwork::of_ipv6(address, prefix), times))
        });
        v4.into_iter().chain(v6)
    }

    /// The widest of its networks, by which peers are compared with each other.
    pub(crate) fn widest(self) -> PeerNetwork {
        match self.0 {
            IpAddr::V4(_) => PeerNetwork { address: self.0, prefix: 32 },
            IpAddr::V6(address) => PeerNetwork::of_ipv6(address, 48),
        }
    }
}

impl PeerNetwork {
    fn of_ipv6(address: Ipv6Addr, prefix: u8) -> Self {
        let host_bits = u32::from(128 - prefix);
        let network = Ipv6Addr::from_bits(address.to_bits() >> host_bits << host_bits);
        Self { address: network.into(), prefix }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> Peer {
        Peer::new(address.parse().unwrap())
    }

    #[test]
    fn an_ipv4_address_is_one_peer() {
        let networks: Vec<_> = peer("192.0.2.1").networks().collect();
        assert_eq!(networks, peer("::ffff:192.0.2.1").networks().collect::<Vec<_>>());
        assert_eq!(networks, [(peer("192.0.2.1").widest(), 1)]);
        assert_ne!(peer("192.0.2.1").widest(), peer("192.0.2.2").widest());
    }

    #[test]
    fn an_ipv6_address_counts_in_three_networks() {
        let networks = |address| peer(address).networks().collect::<Vec<_>>();
        let first = networks("2001:db8:1:101::1");
        assert_eq!(first.iter().map(|(_, times)| *times).collect::<Vec<_>>(), [1, 2, 4]);
        assert_eq!(first, networks("2001:db8:1:101:ffff::2"));
        assert_eq!(first[1..], networks("2001:db8:1:1ff::1")[1..], "the same /56");
        assert_ne!(first[0], networks("2001:db8:1:1ff::1")[0]);
        assert_eq!(first[2..], networks("2001:db8:1:ffff::1")[2..], "the same /48");
        assert_ne!(first[1], networks("2001:db8:1:ffff::1")[1]);
        assert_eq!(first[2].0, peer("2001:db8:1::").widest());
        assert_ne!(first[2], networks("2001:db8:2:101::1")[2]);
    }
}
