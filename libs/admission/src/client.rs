//! Which addresses are one client: an IPv4 address, or three networks of an IPv6 address, since one site has a /48 of
//! its own, one home a /56 and one host a /64.

use std::net::IpAddr;

use crate::shares::Holder;

/// How many times the limit of one client its networks have, narrowest first: of IPv4 there is the first one alone.
pub const NETWORK_TIMES: [u32; 3] = [1, 2, 4];

/// Prefix lengths of the networks of a client, narrowest first, each with how many times the limit of one client it has.
type Prefixes = &'static [(u8, u32)];

const WHOLE_ADDRESS: Prefixes = &[(128, NETWORK_TIMES[0])];
const IPV6_NETWORKS: Prefixes = &[(64, NETWORK_TIMES[0]), (56, NETWORK_TIMES[1]), (48, NETWORK_TIMES[2])];

/// The client of a connection or request, as limits by client count it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Client {
    /// The client with this address; a mapped IPv4 address is the IPv4 address.
    Address(IpAddr),
    /// All clients of which the proxy with this address gives no address that can be read.
    Behind(IpAddr),
}

/// A network that counts as one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientNetwork {
    /// As an IPv6 address, without the bits of its hosts.
    address: u128,
    prefix: u8,
    /// Whether it is that of a proxy, for all whom it does not name.
    is_proxy: bool,
}

impl Client {
    /// The networks that it counts in, narrowest first, each with how many times the limit of one client it has.
    pub fn networks(self) -> impl Iterator<Item = (ClientNetwork, u32)> {
        self.prefixes().iter().map(move |(prefix, times)| (self.in_prefix(*prefix), *times))
    }

    /// Those that a share of the client counts for, where `cap` is what one client may hold.
    pub fn holders(self, cap: usize) -> impl Iterator<Item = Holder<ClientNetwork>> {
        self.networks().map(move |(key, times)| Holder { key, cap: cap.saturating_mul(times as usize) })
    }

    /// The narrowest of its networks: the client by itself.
    pub fn narrowest(self) -> ClientNetwork {
        self.in_prefix(self.prefixes()[0].0)
    }

    /// The widest of its networks, which takes turns with those of other clients.
    pub fn widest(self) -> ClientNetwork {
        let prefixes = self.prefixes();
        self.in_prefix(prefixes[prefixes.len() - 1].0)
    }

    fn prefixes(self) -> Prefixes {
        match self {
            Self::Address(address) if address.to_canonical().is_ipv6() => IPV6_NETWORKS,
            Self::Address(_) | Self::Behind(_) => WHOLE_ADDRESS,
        }
    }

    fn in_prefix(self, prefix: u8) -> ClientNetwork {
        let (address, is_proxy) = match self {
            Self::Address(address) => (address, false),
            Self::Behind(proxy) => (proxy, true),
        };
        let bits = match address {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
            IpAddr::V6(v6) => v6.to_bits(),
        };
        let of_hosts = u32::from(128 - prefix);
        ClientNetwork { address: bits >> of_hosts << of_hosts, prefix, is_proxy }
    }
}

impl ClientNetwork {
    /// A key of the network: different networks have different ones.
    pub fn to_bytes(self) -> [u8; 18] {
        let mut bytes = [0; 18];
        bytes[..16].copy_from_slice(&self.address.to_be_bytes());
        bytes[16] = self.prefix;
        bytes[17] = u8::from(self.is_proxy);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(address: &str) -> Client {
        Client::Address(address.parse().unwrap())
    }

    #[test]
    fn an_ipv4_address_is_one_client() {
        let networks: Vec<_> = client("192.0.2.1").networks().collect();
        assert_eq!(networks, client("::ffff:192.0.2.1").networks().collect::<Vec<_>>());
        assert_eq!(networks, [(client("192.0.2.1").widest(), 1)]);
        assert_eq!(client("192.0.2.1").narrowest(), client("192.0.2.1").widest());
        assert_ne!(client("192.0.2.1").widest(), client("192.0.2.2").widest());
    }

    #[test]
    fn an_ipv6_address_counts_in_three_networks() {
        let networks = |address| client(address).networks().collect::<Vec<_>>();
        let first = networks("2001:db8:1:101::1");
        assert_eq!(first.iter().map(|(_, times)| *times).collect::<Vec<_>>(), [1, 2, 4]);
        assert_eq!(first, networks("2001:db8:1:101:ffff::2"));
        assert_eq!(first[0].0, client("2001:db8:1:101::").narrowest());
        assert_eq!(first[1..], networks("2001:db8:1:1ff::1")[1..], "the same /56");
        assert_ne!(first[0], networks("2001:db8:1:1ff::1")[0]);
        assert_eq!(first[2..], networks("2001:db8:1:ffff::1")[2..], "the same /48");
        assert_ne!(first[1], networks("2001:db8:1:ffff::1")[1]);
        assert_eq!(first[2].0, client("2001:db8:1::").widest());
        assert_ne!(first[2], networks("2001:db8:2:101::1")[2]);
    }

    #[test]
    fn the_networks_of_one_address_have_different_keys() {
        let all: Vec<_> = client("2001:db8::").networks().map(|(network, _)| network.to_bytes()).collect();
        assert!(all[0] != all[1] && all[1] != all[2]);
    }

    #[test]
    fn a_proxy_and_those_behind_it_are_two_clients() {
        for proxy in ["10.0.0.1", "fd00::1"] {
            let behind = Client::Behind(proxy.parse().unwrap());
            assert_eq!(behind.networks().collect::<Vec<_>>(), [(behind.narrowest(), 1)]);
            assert!(client(proxy).networks().all(|(network, _)| network != behind.narrowest()));
            assert_ne!(client(proxy).narrowest().to_bytes(), behind.narrowest().to_bytes());
        }
    }
}
