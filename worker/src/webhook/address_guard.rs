//! The look-up of a receiver's addresses, which lets only those through that may be connected to.
//! What is connected to is what was judged: nobody looks the name up again.

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
use tokio::time::timeout;

use super::destination::{Destinations, Reach};
use super::open_files::is_none_left;

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
    /// There was no file left to ask DNS with.
    #[error("this process or its system has no file left")]
    NoFile,
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
    /// Longest that all of a look-up may take. Shorter than what is allowed for a connection, so that
    /// it is told from one that takes too long.
    pub(super) within: Duration,
}

impl AddressGuard {
    /// What DNS says; `None` where it says nothing in time.
    async fn look_up(&self, name: &str) -> Option<Result<LookupIp, NetError>> {
        // The dot at the end: no search list of the system makes another name of it.
        let name = format!("{}.", name.trim_end_matches('.'));
        timeout(self.within, self.resolver.lookup_ip(name)).await.ok()
    }

    /// What may be connected to.
    fn judge(&self, found: Option<Result<LookupIp, NetError>>) -> Result<Vec<SocketAddr>, Refusal> {
        let addresses: Vec<SocketAddr> = match found {
            Some(Ok(found)) => found.iter().map(|address| (address, 0).into()).collect(),
            Some(Err(NetError::Dns(_))) => Vec::new(),
            // The resolver does not tell why it could not ask.
            Some(Err(_)) | None if is_none_left() => return Err(Refusal::NoFile),
            Some(Err(_)) | None => Vec::new(),
        };
        if addresses.is_empty() {
            // Of names of the inside nobody learns whether they exist.
            let is_known = self.reach == Reach::Public;
            return Err(if is_known { Refusal::NoAddress } else { Refusal::Blocked });
        }
        let all_admitted = addresses.iter().all(|one| self.destinations.admits(self.reach, one.ip()));
        if all_admitted { Ok(addresses) } else { Err(Refusal::Blocked) }
    }
}

impl Resolve for AddressGuard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let judged = guard.judge(guard.look_up(name.as_str()).await);
            judged
                .map(|addresses| Box::new(addresses.into_iter()) as Addrs)
                .map_err(|refusal| Box::new(refusal) as Box<dyn Error + Send + Sync>)
        })
    }
}
