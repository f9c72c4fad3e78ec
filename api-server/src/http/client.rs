//! The client of a request, for limits by client: the rightmost `X-Forwarded-For` address that is not a
//! trusted proxy, or the peer itself where the peer is not trusted. IPv6 addresses count by /64.
//!
//! The field is read from its end and by octets, so that nothing that a client puts in front hides what a proxy added.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::http::HeaderMap;
use ipnet::IpNet;
use tempmail_bus::RateKey;
use tempmail_runtime::config::Http;

/// The peer of a connection, put into the extensions of its requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerAddr(pub(crate) SocketAddr);

/// What limits by client count by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ClientKey {
    /// An IPv4 address, or an IPv6 /64.
    Address(IpAddr),
    /// All clients of which this trusted proxy gives no address that can be read.
    Behind(IpAddr),
}

impl From<ClientKey> for RateKey {
    fn from(client: ClientKey) -> Self {
        match client {
            ClientKey::Address(address) => address.into(),
            ClientKey::Behind(proxy) => {
                Self::from_parts(&[b"behind", Self::from(proxy).as_uuid().as_bytes()])
            }
        }
    }
}

/// A network that a client is in. Whoever has an IPv6 /64 may well have its /56 or /48.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ClientNetwork {
    /// The client itself.
    Own(ClientKey),
    /// An IPv6 /56.
    Prefix56(u128),
    /// An IPv6 /48.
    Prefix48(u128),
}

impl From<ClientNetwork> for RateKey {
    fn from(network: ClientNetwork) -> Self {
        match network {
            ClientNetwork::Own(client) => client.into(),
            ClientNetwork::Prefix56(prefix) => Self::from_parts(&[b"/56", &prefix.to_be_bytes()]),
            ClientNetwork::Prefix48(prefix) => Self::from_parts(&[b"/48", &prefix.to_be_bytes()]),
        }
    }
}

impl ClientKey {
    /// The networks of the client, itself first: one of IPv4, three of IPv6.
    pub(crate) fn networks(self) -> impl Iterator<Item = ClientNetwork> {
        let wider = match self {
            Self::Address(IpAddr::V4(_)) | Self::Behind(_) => None,
            Self::Address(IpAddr::V6(v6)) => {
                let bits = u128::from(v6);
                Some([ClientNetwork::Prefix56(bits >> 72 << 72), ClientNetwork::Prefix48(bits >> 80 << 80)])
            }
        };
        [ClientNetwork::Own(self)].into_iter().chain(wider.into_iter().flatten())
    }
}

/// A client, and whether limits by client apply to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) key: ClientKey,
    pub(crate) unlimited: bool,
}

/// Determines the client of a request or connection, by the configured networks.
#[derive(Debug, Clone)]
pub(crate) struct ClientResolver {
    trusted_proxies: Vec<IpNet>,
    unlimited: Vec<IpNet>,
}

impl ClientResolver {
    pub(crate) fn new(http: &Http) -> Self {
        Self { trusted_proxies: http.trusted_proxies.clone(), unlimited: http.unlimited_networks.clone() }
    }

    /// The client of a request that came from `peer`. Where a trusted proxy gives no address that can be read (`unknown`,
    /// an obfuscated name, nothing), the client is whoever is behind it, and never unlimited.
    pub(crate) fn of_request(&self, peer: IpAddr, headers: &HeaderMap) -> Client {
        let mut address = peer.to_canonical();
        let lines = headers.get_all("x-forwarded-for").iter().rev();
        let mut hops = lines.flat_map(|line| line.as_bytes().rsplit(|octet| *octet == b','));
        while contains(&self.trusted_proxies, address)
            && let Some(hop) = hops.next()
        {
            let Some(behind) = hop_address(hop) else {
                return Client { key: ClientKey::Behind(prefix(address)), unlimited: false };
            };
            address = behind;
        }
        self.client(address)
    }

    /// The client of a connection, before any request. `unlimited` also where the peer is a trusted
    /// proxy, which connects on behalf of many clients.
    pub(crate) fn of_connection(&self, peer: IpAddr) -> Client {
        let address = peer.to_canonical();
        let client = self.client(address);
        Client { unlimited: client.unlimited || contains(&self.trusted_proxies, address), ..client }
    }

    /// Whether a peer is a trusted proxy.
    pub(crate) fn is_trusted_proxy(&self, peer: IpAddr) -> bool {
        contains(&self.trusted_proxies, peer.to_canonical())
    }

    fn client(&self, address: IpAddr) -> Client {
        Client { key: ClientKey::Address(prefix(address)), unlimited: contains(&self.unlimited, address) }
    }
}

/// An IPv4 address, or the /64 of an IPv6 address.
fn prefix(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => Ipv6Addr::from(u128::from(v6) >> 64 << 64).into(),
    }
}

fn contains(networks: &[IpNet], address: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(&address))
}

/// Parses an address as proxies write it: bare, in brackets, or with a port.
fn hop_address(hop: &[u8]) -> Option<IpAddr> {
    let hop = std::str::from_utf8(hop.trim_ascii()).ok()?;
    let bare = hop.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(hop);
    let address = bare.parse().or_else(|_| hop.parse::<SocketAddr>().map(|with_port| with_port.ip())).ok()?;
    Some(IpAddr::to_canonical(&address))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn resolver(proxies: &[&str], unlimited: &[&str]) -> ClientResolver {
        let nets = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        ClientResolver { trusted_proxies: nets(proxies), unlimited: nets(unlimited) }
    }

    fn of_lines(resolver: &ClientResolver, peer: &str, forwarded: &[&[u8]]) -> Client {
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append("x-forwarded-for", HeaderValue::from_bytes(line).unwrap());
        }
        resolver.of_request(peer.parse().unwrap(), &headers)
    }

    fn client(resolver: &ClientResolver, peer: &str, forwarded: &[&str]) -> String {
        let lines: Vec<&[u8]> = forwarded.iter().map(|line| line.as_bytes()).collect();
        match of_lines(resolver, peer, &lines).key {
            ClientKey::Address(address) => address.to_string(),
            ClientKey::Behind(proxy) => format!("behind {proxy}"),
        }
    }

    #[test]
    fn trusts_the_forwarded_addresses_of_trusted_proxies_only() {
        let resolver = resolver(&["10.0.0.0/8", "fd00::/8"], &[]);
        assert_eq!(client(&resolver, "192.0.2.1", &["198.51.100.7"]), "192.0.2.1");
        assert_eq!(client(&resolver, "10.0.0.1", &["198.51.100.7"]), "198.51.100.7");
        assert_eq!(client(&resolver, "10.0.0.1", &["1.1.1.1, 198.51.100.7, 10.9.9.9"]), "198.51.100.7");
        assert_eq!(client(&resolver, "10.0.0.1", &["1.1.1.1", "198.51.100.7"]), "198.51.100.7");
        assert_eq!(client(&resolver, "10.0.0.1", &["1.1.1.1, nonsense"]), "behind 10.0.0.1");
        assert_eq!(client(&resolver, "10.0.0.1", &["10.0.0.3, 10.0.0.2"]), "10.0.0.3");
        assert_eq!(client(&resolver, "::ffff:10.0.0.1", &["198.51.100.7:4711"]), "198.51.100.7");
        assert_eq!(client(&resolver, "fd00::1", &["[2001:db8:1:2:3:4:5:6]:80"]), "2001:db8:1:2::");
    }

    #[test]
    fn finds_the_last_hop_whatever_octets_are_before_it() {
        let resolver = resolver(&["127.0.0.0/8"], &["127.0.0.0/8"]);
        let long = [&b"\xff, ".repeat(1_000)[..], b"203.0.113.6"].concat();
        for lines in [
            &[&b"\xff, 203.0.113.6"[..]][..],
            &[b"\xff\xfe\x80,203.0.113.6"],
            &[b"\xff", b"203.0.113.6"],
            &[b"203.0.113.7, \xc3\xa9", b"\xff,,, 203.0.113.6:4711"],
            &[b"unknown, _hidden, \xff, [::ffff:203.0.113.6]:80"],
            &[b"\t 203.0.113.6\t "],
            &[&long],
        ] {
            let found = of_lines(&resolver, "127.0.0.1", lines);
            let expected = ClientKey::Address("203.0.113.6".parse().unwrap());
            assert_eq!((found.key, found.unlimited), (expected, false), "{lines:?}");
        }
    }

    #[test]
    fn a_trusted_proxy_whose_last_hop_cant_be_read_is_a_client_of_its_own_and_limited() {
        let resolver = resolver(&["127.0.0.0/8"], &["127.0.0.0/8"]);
        let proxy = of_lines(&resolver, "127.0.0.1", &[]);
        assert!(proxy.unlimited);
        for last in [
            &b"\xff"[..],
            b"",
            b" ",
            b"unknown",
            b"_hidden",
            b"unix:",
            b"203.0.113.6\xff",
            b"[::1",
            b"[::1]x",
            b"[::1]:99999",
            b"203.0.113.6:port",
            b"for=203.0.113.6",
        ] {
            let appended = [&b"203.0.113.7,"[..], last].concat();
            for lines in [&[last][..], &[b"203.0.113.7", last], &[&appended]] {
                let found = of_lines(&resolver, "127.0.0.1", lines);
                assert_eq!(found.key, ClientKey::Behind("127.0.0.1".parse().unwrap()), "{lines:?}");
                assert!(
                    !found.unlimited && RateKey::from(found.key) != RateKey::from(proxy.key),
                    "{lines:?}"
                );
                // Of whom is not trusted nothing is read.
                assert_eq!(of_lines(&resolver, "192.0.2.1", lines), of_lines(&resolver, "192.0.2.1", &[]));
            }
        }
    }

    #[test]
    fn counts_ipv6_clients_by_64_and_exempts_unlimited_networks() {
        let resolver = resolver(&[], &["::1/128", "127.0.0.0/8"]);
        assert_eq!(client(&resolver, "2001:db8::1", &[]), client(&resolver, "2001:db8::ffff:1", &[]));
        assert_ne!(client(&resolver, "2001:db8::1", &[]), client(&resolver, "2001:db8:0:1::1", &[]));
        let unlimited = |peer: &str| resolver.of_request(peer.parse().unwrap(), &HeaderMap::new()).unlimited;
        assert!(unlimited("::1") && unlimited("127.0.0.9") && unlimited("::ffff:127.0.0.1"));
        assert!(!unlimited("::2"));
    }

    #[test]
    fn an_ipv6_client_is_in_networks_of_three_sizes() {
        let networks = |address: &str| {
            let client = resolver(&[], &[]).of_connection(address.parse().unwrap());
            client.key.networks().collect::<Vec<_>>()
        };
        assert_eq!(networks("192.0.2.1").len(), 1);
        let [one, same_56, same_48] = ["2001:db8::1", "2001:db8:0:ff::1", "2001:db8:0:ffff::1"].map(networks);
        assert_eq!((one.len(), one[1], one[2]), (3, same_56[1], same_48[2]));
        assert!(one[0] != same_56[0] && one[1] != same_48[1]);
        assert_ne!(one[2], networks("2001:db8:1::1")[2]);
    }

    #[test]
    fn exempts_the_connections_of_trusted_proxies() {
        let resolver = resolver(&["10.0.0.0/8"], &[]);
        assert!(resolver.of_connection("10.0.0.1".parse().unwrap()).unlimited);
        assert!(!resolver.of_connection("192.0.2.1".parse().unwrap()).unlimited);
    }
}
