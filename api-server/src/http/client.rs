//! The client of a request, for limits by client: the rightmost `X-Forwarded-For` address that is not a
//! trusted proxy, or the peer itself where the peer is not trusted.
//!
//! The field is read from its end and by octets, so that nothing that a client puts in front hides what a proxy added.

use std::net::{IpAddr, SocketAddr};

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::Response;
use ipnet::IpNet;
use tempmail_admission::{Client as Origin, ClientNetwork, Holder, TurnKey};
use tempmail_model::chance;
use tempmail_runtime::config::Http;
use uuid::Uuid;

use super::error::{ApiError, Surface};
use super::rate_limit::{RateLimitHeaders, RequestLimits};

/// The peer of a connection, put into the extensions of its requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerAddr(pub(crate) SocketAddr);

/// Who takes turns, or has a share of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Party {
    /// A tenant, a mailbox or an inbox.
    Id(Uuid),
    /// A network of clients.
    Network(ClientNetwork),
}

/// A client, and whether limits by client apply to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Client {
    /// Where it comes from, as limits by client count it.
    pub(crate) origin: Origin,
    pub(crate) unlimited: bool,
}

impl Client {
    /// The networks that count it, narrowest first, each with how many times the limit of one client it has; none of a client
    /// without limits.
    pub(crate) fn networks(self) -> impl Iterator<Item = (ClientNetwork, u32)> {
        (!self.unlimited).then(|| self.origin.networks()).into_iter().flatten()
    }

    /// Whom a share of the client counts for, where `cap` is what one client may have.
    pub(crate) fn holders(self, cap: usize) -> impl Iterator<Item = Holder<ClientNetwork>> {
        (!self.unlimited).then(|| self.origin.holders(cap)).into_iter().flatten()
    }

    /// Whose turn a request of the client takes: its tenant's, or without one that of its widest network. Each request of
    /// a client without limits is a member of its own.
    pub(crate) fn turn_key(self, tenant: Option<Uuid>) -> TurnKey<Party> {
        let member =
            if self.unlimited { Party::Id(chance::uuid()) } else { Party::Network(self.origin.narrowest()) };
        let party = match tenant {
            Some(tenant) => Party::Id(tenant),
            None if self.unlimited => member,
            None => Party::Network(self.origin.widest()),
        };
        TurnKey { party, member }
    }
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
                return Client { origin: Origin::Behind(address), unlimited: false };
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
        Client { origin: Origin::Address(address), unlimited: contains(&self.unlimited, address) }
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

/// A client without a credential. Extracting it counts the request against the client's rate: requests with a
/// credential count by that, so that nobody is refused for what others behind its address do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PublicCaller {
    pub(crate) client: Client,
}

impl<S: AsRef<RequestLimits> + Send + Sync> FromRequestParts<S> for PublicCaller {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let surface = Surface::of_path(parts.uri.path());
        let client = parts.extensions.get::<Client>().copied();
        // The middleware has put it there.
        let client = client.ok_or_else(|| ApiError::Internal.into_response_on(surface))?;
        count_public_request(client, state.as_ref(), parts)
            .await
            .map_err(|error| error.into_response_on(surface))?;
        Ok(Self { client })
    }
}

/// Counts a request of a client without a credential against its rate.
///
/// # Errors
/// [`ApiError::RateLimitExceeded`].
pub(crate) async fn count_public_request(
    client: Client,
    limits: &RequestLimits,
    parts: &Parts,
) -> Result<(), ApiError> {
    match limits.count_public(client).await {
        Some(decision) => RateLimitHeaders::enforce_in(&parts.extensions, "client", decision),
        None => Ok(()),
    }
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
        match of_lines(resolver, peer, &lines).origin {
            Origin::Address(address) => address.to_string(),
            Origin::Behind(proxy) => format!("behind {proxy}"),
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
        assert_eq!(client(&resolver, "fd00::1", &["[2001:db8:1:2:3:4:5:6]:80"]), "2001:db8:1:2:3:4:5:6");
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
            let expected = Origin::Address("203.0.113.6".parse().unwrap());
            assert_eq!((found.origin, found.unlimited), (expected, false), "{lines:?}");
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
                assert_eq!(found.origin, Origin::Behind("127.0.0.1".parse().unwrap()), "{lines:?}");
                assert!(!found.unlimited, "{lines:?}");
                // Of whom is not trusted nothing is read.
                assert_eq!(of_lines(&resolver, "192.0.2.1", lines), of_lines(&resolver, "192.0.2.1", &[]));
            }
        }
    }

    #[test]
    fn exempts_unlimited_networks() {
        let resolver = resolver(&[], &["::1/128", "127.0.0.0/8"]);
        let unlimited = |peer: &str| resolver.of_request(peer.parse().unwrap(), &HeaderMap::new()).unlimited;
        assert!(unlimited("::1") && unlimited("127.0.0.9") && unlimited("::ffff:127.0.0.1"));
        assert!(!unlimited("::2"));
    }

    #[test]
    fn takes_the_turn_of_its_tenant_or_else_of_its_widest_network() {
        let resolver = resolver(&[], &["127.0.0.0/8"]);
        let key = |address: &str, tenant| resolver.of_connection(address.parse().unwrap()).turn_key(tenant);
        let (tenant, [one, other]) = (Some(Uuid::nil()), ["2001:db8::1", "2001:db8:0:1::1"]);
        assert_eq!(key(one, None).party, key(other, None).party);
        assert_ne!(key(one, None).member, key(other, None).member);
        assert_eq!(key(one, tenant), TurnKey { party: Party::Id(Uuid::nil()), ..key(one, None) });
        assert_ne!(key("127.0.0.1", None).party, key("127.0.0.1", None).party);
        assert_eq!(key("127.0.0.1", tenant).party, Party::Id(Uuid::nil()));
    }

    #[test]
    fn exempts_the_connections_of_trusted_proxies() {
        let resolver = resolver(&["10.0.0.0/8"], &[]);
        assert!(resolver.of_connection("10.0.0.1".parse().unwrap()).unlimited);
        assert!(!resolver.of_connection("192.0.2.1".parse().unwrap()).unlimited);
    }
}
