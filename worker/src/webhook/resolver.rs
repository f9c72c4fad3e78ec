//! Resolves the host of a receiver, and refuses addresses that may not be connected to. The connection is
//! made to the addresses that were checked: the name is not resolved again.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig};
use hickory_resolver::lookup_ip::LookupIp;
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use ipnet::IpNet;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tempmail_model::network::{embedded_ipv4, is_public};
use tempmail_model::webhook::AddressScope;
use tokio::time::timeout;

use super::failure;

/// Longest that an address is cached.
const POSITIVE_TTL_MAX: Duration = Duration::from_secs(60);
/// Longest that the absence of an address is cached.
const NEGATIVE_TTL_MAX: Duration = Duration::from_secs(5);
/// Longest wait for one DNS response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Why the host of a receiver has no address to connect to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum ResolveError {
    /// One of its addresses is refused.
    #[error("the receiver has an address that webhooks may not be sent to")]
    Blocked,
    /// DNS has no address for it, or does not respond.
    #[error("the receiver's name has no address")]
    NoAddress,
    /// DNS could not be queried.
    #[error("this process or its system has no file descriptor left")]
    NoFileDescriptor,
}

/// A resolver that queries `servers`, or the system's if there are none.
///
/// # Errors
/// The system's servers can't be read.
pub(super) fn resolver(servers: &[SocketAddr]) -> anyhow::Result<TokioResolver> {
    let mut builder = if servers.is_empty() {
        TokioResolver::builder_tokio()?
    } else {
        let servers = servers.iter().map(|server| {
            let mut config = NameServerConfig::udp_and_tcp(server.ip());
            for connection in &mut config.connections {
                connection.port = server.port();
            }
            config
        });
        let config = ResolverConfig::from_parts(None, vec![], servers.collect());
        TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
    };
    let options = builder.options_mut();
    options.timeout = RESPONSE_TIMEOUT;
    options.attempts = 2;
    // All addresses are checked; the hosts file may name private ones.
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    options.use_hosts_file = ResolveHosts::Never;
    options.positive_max_ttl = Some(POSITIVE_TTL_MAX);
    options.negative_max_ttl = Some(NEGATIVE_TTL_MAX);
    Ok(builder.build()?)
}

/// Resolves names for connections; see the module.
#[derive(Debug, Clone)]
pub(super) struct GuardedResolver {
    pub(super) resolver: TokioResolver,
    pub(super) policy: Arc<DestinationPolicy>,
    pub(super) scope: AddressScope,
    /// Longest that resolving a name may take. Shorter than the timeout of a connection, so that the two can
    /// be told apart.
    pub(super) timeout: Duration,
}

impl GuardedResolver {
    /// The response of DNS; `None` if there is none in time.
    async fn look_up(&self, name: &str) -> Option<Result<LookupIp, NetError>> {
        // With a dot at the end, search domains of the system are not tried.
        let name = format!("{}.", name.trim_end_matches('.'));
        timeout(self.timeout, self.resolver.lookup_ip(name)).await.ok()
    }

    /// The addresses to connect to.
    fn check(&self, response: Option<Result<LookupIp, NetError>>) -> Result<Vec<SocketAddr>, ResolveError> {
        let addresses: Vec<SocketAddr> = match response {
            Some(Ok(found)) => found.iter().map(|address| (address, 0).into()).collect(),
            Some(Err(NetError::Dns(_))) => Vec::new(),
            // The resolver does not say why it could not send a query.
            Some(Err(_)) | None if failure::no_file_descriptor_left() => {
                return Err(ResolveError::NoFileDescriptor);
            }
            Some(Err(_)) | None => Vec::new(),
        };
        if addresses.is_empty() {
            // Tenants do not learn which private names exist.
            let is_public = self.scope == AddressScope::Public;
            return Err(if is_public { ResolveError::NoAddress } else { ResolveError::Blocked });
        }
        let all_allowed = addresses.iter().all(|address| self.policy.allows(self.scope, address.ip()));
        if all_allowed { Ok(addresses) } else { Err(ResolveError::Blocked) }
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = self.clone();
        Box::pin(async move {
            let checked = resolver.check(resolver.look_up(name.as_str()).await);
            checked
                .map(|addresses| Box::new(addresses.into_iter()) as Addrs)
                .map_err(|error| Box::new(error) as Box<dyn Error + Send + Sync>)
        })
    }
}

/// Which addresses webhooks may be sent to: public ones, and private ones that the installation allows.
#[derive(Debug, Clone)]
pub(super) struct DestinationPolicy {
    allowed: Vec<IpNet>,
    denied: Vec<IpNet>,
}

impl DestinationPolicy {
    pub(super) fn new(allowed: &[IpNet], denied: &[IpNet]) -> Self {
        Self { allowed: allowed.to_vec(), denied: denied.to_vec() }
    }

    /// Whether `address` may be connected to. A mapped address is one of IPv4 in every list.
    pub(super) fn allows(&self, scope: AddressScope, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let within = |networks: &[IpNet], address| networks.iter().any(|network| network.contains(&address));
        // Also denied as an IPv6 address that embeds it.
        let denied = within(&self.denied, address)
            || embedded_ipv4(address).is_some_and(|ipv4| within(&self.denied, ipv4.into()));
        let allowed = within(&self.allowed, address) || (scope == AddressScope::Public && is_public(address));
        allowed && !denied
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(allowed: &[&str], denied: &[&str]) -> DestinationPolicy {
        let networks =
            |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<IpNet>>();
        DestinationPolicy::new(&networks(allowed), &networks(denied))
    }

    #[test]
    fn denied_networks_override_allowed_ones() {
        let both = policy(&["10.0.0.0/8"], &["10.1.0.0/16", "8.8.8.0/24"]);
        let allows = |scope, address: &str| both.allows(scope, address.parse().unwrap());
        for allowed in ["1.1.1.1", "10.2.3.4", "::ffff:10.2.3.4"] {
            assert!(allows(AddressScope::Public, allowed), "{allowed}");
        }
        assert!(
            allows(AddressScope::AllowedNetworks, "10.2.3.4")
                && !allows(AddressScope::AllowedNetworks, "1.1.1.1")
        );
        for denied in [
            "10.1.2.3",
            "8.8.8.8",
            "192.168.0.1",
            "127.0.0.1",
            "::1",
            "64:ff9b::a02:304",
            "::ffff:192.168.0.1",
        ] {
            assert!(!allows(AddressScope::Public, denied), "{denied}");
        }
        let all = policy(&["0.0.0.0/0", "::/0"], &["10.1.0.0/16"]);
        let allows = |address: &str| all.allows(AddressScope::AllowedNetworks, address.parse().unwrap());
        for denied in ["10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::10.1.2.3", "2002:a01:203::1"] {
            assert!(!allows(denied), "{denied}");
        }
        assert!(allows("10.2.0.1") && allows("::ffff:10.2.0.1") && allows("::1"));
    }
}
