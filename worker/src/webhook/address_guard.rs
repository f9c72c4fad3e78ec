//! The look-up of a receiver's addresses, which lets only those through that may be connected to.
//! What is connected to is what was judged: nobody looks the name up again.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::destination::{Destinations, Reach};

/// Longest that an address is remembered.
const REMEMBERED: Duration = Duration::from_secs(60);
/// Longest that the absence of one is.
const ABSENCE_REMEMBERED: Duration = Duration::from_secs(5);
/// Longest wait for one answer of DNS.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// Why a receiver can't be connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    /// One of its addresses is not one that webhooks may go to.
    #[error("the receiver has an address that webhooks do not go to")]
    Blocked,
    /// DNS has no address for it, or does not answer.
    #[error("the receiver's name has no address")]
    NoAddress,
}

/// Looks up names through `servers`, or through the system's where there are none.
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
    options.timeout = ANSWER_WITHIN;
    options.attempts = 2;
    // All addresses are judged, and what is in the file is of the inside.
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    options.use_hosts_file = ResolveHosts::Never;
    options.positive_max_ttl = Some(REMEMBERED);
    options.negative_max_ttl = Some(ABSENCE_REMEMBERED);
    Ok(builder.build()?)
}

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct AddressGuard {
    pub(super) resolver: TokioResolver,
    pub(super) destinations: Arc<Destinations>,
    pub(super) reach: Reach,
}

impl Resolve for AddressGuard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            // The dot at the end: no search list of the system makes another name of it.
            let name = format!("{}.", name.as_str().trim_end_matches('.'));
            let found = guard.resolver.lookup_ip(name).await;
            let addresses: Vec<SocketAddr> = found
                .map(|found| found.iter().map(|address| (address, 0).into()).collect())
                .unwrap_or_default();
            let judged = if addresses.is_empty() {
                // Of names of the inside nobody learns whether they exist.
                let is_known = guard.reach == Reach::Public;
                Err(if is_known { Refusal::NoAddress } else { Refusal::Blocked })
            } else if addresses.iter().all(|one| guard.destinations.admits(guard.reach, one.ip())) {
                Ok(Box::new(addresses.into_iter()) as Addrs)
            } else {
                Err(Refusal::Blocked)
            };
            judged.map_err(|refusal| Box::new(refusal) as Box<dyn Error + Send + Sync>)
        })
    }
}
