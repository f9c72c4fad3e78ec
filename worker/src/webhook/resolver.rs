//! Resolves the host of a receiver, and refuses addresses that may not be connected to. The connection is
//! made to the addresses that were checked: the name is not resolved again.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig};
use hickory_resolver::lookup_ip::LookupIp;
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tempmail_model::webhook::AddressScope;
use tokio::time::timeout;

use super::destination::DestinationPolicy;
use super::file_descriptors;

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
            Some(Err(_)) | None if file_descriptors::none_left() => {
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
