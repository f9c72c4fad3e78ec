//! The client of a request, for limits by client: the rightmost `X-Forwarded-For` address that is not a
//! trusted proxy, or the peer itself where the peer is not trusted. IPv6 addresses count by /64.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::http::HeaderMap;
use ipnet::IpNet;
use tempmail_bus::RateKey;
use tempmail_runtime::config::Http;

/// The peer of a connection, put into the extensions of its requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerAddr(pub(crate) SocketAddr);

/// What limits by client count by: an IPv4 address, or an IPv6 /64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ClientKey(IpAddr);

impl From<ClientKey> for RateKey {
    fn from(client: ClientKey) -> Self {
        client.0.into()
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
        let wider = match self.0 {
            IpAddr::V4(_) => None,
            IpAddr::V6(v6) => {
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

    /// The client of a request that came from `peer`.
    pub(crate) fn of_request(&self, peer: IpAddr, headers: &HeaderMap) -> Client {
        let mut address = peer.to_canonical();
        let forwarded: Vec<&str> = headers
            .get_all("x-forwarded-for")
            .iter()
            .flat_map(|value| value.to_str().unwrap_or("").split(','))
            .collect();
        for hop in forwarded.into_iter().rev() {
            if !contains(&self.trusted_proxies, address) {
                break;
            }
            let Some(behind) = hop_address(hop) else { break };
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
        let key = match address {
            IpAddr::V4(_) => address,
            IpAddr::V6(v6) => Ipv6Addr::from(u128::from(v6) >> 64 << 64).into(),
        };
        Client { key: ClientKey(key), unlimited: contains(&self.unlimited, address) }
    }
}

fn contains(networks: &[IpNet], address: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(&address))
}

/// Parses an address as proxies write it: bare, in brackets, or with a port.
fn hop_address(hop: &str) -> Option<IpAddr> {
    let hop = hop.trim();
    let bare = hop.strip_prefix('[').and_then(|rest| rest.split_once(']')).map_or(hop, |(inner, _)| inner);
    let address = bare.parse().or_else(|_| hop.parse::<SocketAddr>().map(|with_port| with_port.ip())).ok()?;
    Some(IpAddr::to_canonical(&address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolver(proxies: &[&str], unlimited: &[&str]) -> ClientResolver {
        let nets = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        ClientResolver { trusted_proxies: nets(proxies), unlimited: nets(unlimited) }
    }

    fn client(resolver: &ClientResolver, peer: &str, forwarded: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append("x-forwarded-for", value.parse().unwrap());
        }
        resolver.of_request(peer.parse().unwrap(), &headers).key.0.to_string()
    }

    #[test]
    fn trusts_the_forwarded_addresses_of_trusted_proxies_only() {
        let resolver = resolver(&["10.0.0.0/8", "fd00::/8"], &[]);
        assert_eq!(client(&resolver, "192.0.2.1", &["198.51.100.7"]), "192.0.2.1");
        assert_eq!(client(&resolver, "10.0.0.1", &["198.51.100.7"]), "198.51.100.7");
        assert_eq!(client(&resolver, "10.0.0.1", &["1.1.1.1, 198.51.100.7, 10.9.9.9"]), "198.51.100.7");
        assert_eq!(client(&resolver, "10.0.0.1", &["1.1.1.1", "198.51.100.7"]), "198.51.100.7");
        assert_eq!(client(&resolver, "10.0.0.1", &["1.1.1.1, nonsense"]), "10.0.0.1");
        assert_eq!(client(&resolver, "10.0.0.1", &["10.0.0.3, 10.0.0.2"]), "10.0.0.3");
        assert_eq!(client(&resolver, "::ffff:10.0.0.1", &["198.51.100.7:4711"]), "198.51.100.7");
        assert_eq!(client(&resolver, "fd00::1", &["[2001:db8:1:2:3:4:5:6]:80"]), "2001:db8:1:2::");
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
