//! Queries DNS for the records that prove a domain.
//!
//! Each address of each of the domain's own name servers is queried, without a cache in between, so that a record
//! that the owner has just created is found. The seeds (resolvers) are only used to find those name servers.

mod answer;
mod client;
pub(crate) mod server_query;
mod zone;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use hickory_proto::rr::Name;
use hickory_resolver::system_conf::read_system_conf;
use tempmail_bus::RateLimit;
use tempmail_runtime::config::Dns;
use tokio::join;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use self::answer::{MX, TXT};
use self::client::{DnsClient, Servers};
use self::server_query::Transport;
use self::zone::{find_zone, follow_aliases, query_records};
use crate::vote::{DomainFindings, ExpectedRecords, tally};

/// Time limit for the queries of one domain. Servers that have answered by then vote.
const PER_DOMAIN: Duration = Duration::from_secs(10);
/// Domains that are checked at the same time.
const IN_FLIGHT: usize = 50;
/// Queries a second to one address of a name server, at most: tenants choose those servers, and many domains share
/// them.
const QUERIES_PER_SECOND: u32 = 50;

/// Why a resolver can't be created.
#[derive(Debug, thiserror::Error)]
pub enum ResolverError {
    /// `dns.servers` is empty, and the servers of the system can't be read.
    #[error("the system's DNS servers can't be read ({0}): name some in `dns.servers`")]
    SystemServers(#[source] io::Error),
}

/// Queries DNS for the records of domains. Caches nothing.
#[derive(Debug)]
pub struct Resolver {
    servers: Servers,
    in_flight: Semaphore,
}

impl Resolver {
    /// Reads the servers of the system if the settings name none.
    ///
    /// # Errors
    /// [`ResolverError::SystemServers`].
    pub fn new(settings: &Dns) -> Result<Self, ResolverError> {
        let seeds = if settings.servers.is_empty() { system_servers()? } else { settings.servers.clone() };
        let servers = Servers {
            mode: settings.mode,
            seeds,
            port: settings.port,
            allow_private: settings.allow_private,
            rate_limit: RateLimit::new("dns-queries", QUERIES_PER_SECOND, Duration::from_secs(1)),
        };
        Ok(Self { servers, in_flight: Semaphore::new(IN_FLIGHT) })
    }

    /// What the servers of the domain answer. Waits while 50 other domains are checked, then takes at most 10 s.
    /// [`DomainFindings::UNKNOWN`] for a domain that is not a DNS name.
    pub async fn find(&self, expected: &ExpectedRecords<'_>, transport: Transport) -> DomainFindings {
        let Some((domain, txt_name)) = names(expected.domain) else { return DomainFindings::UNKNOWN };
        let _permit = self.in_flight.acquire().await.expect("the semaphore is never closed");
        let start = Instant::now();
        let client = DnsClient { servers: &self.servers, transport, deadline: start + PER_DOMAIN };
        let zone = find_zone(&client, &txt_name).await;
        let domain_zone =
            if zone.contains(&domain) { zone.clone() } else { find_zone(&client, &domain).await };
        let (mut txt, mx) = join!(
            query_records(&client, &zone, &txt_name, &TXT),
            query_records(&client, &domain_zone, &domain, &MX)
        );
        follow_aliases(&client, txt_name, &mut txt).await;
        let findings = tally(expected, &txt, &mx);
        record(&findings, start.elapsed());
        findings
    }
}

fn record(findings: &DomainFindings, took: Duration) {
    metrics::histogram!("tempmail_dns_check_seconds").record(took.as_secs_f64());
    let (txt, mx) = (findings.txt.finding.as_str(), findings.mx.finding.as_str());
    metrics::counter!("tempmail_dns_checks_total", "txt" => txt, "mx" => mx).increment(1);
}

fn system_servers() -> Result<Vec<SocketAddr>, ResolverError> {
    let (config, _) =
        read_system_conf().map_err(|error| ResolverError::SystemServers(io::Error::other(error)))?;
    Ok(config.name_servers().iter().map(|server| SocketAddr::new(server.ip, 53)).collect())
}

/// The domain, and the name of its TXT record.
fn names(domain: &str) -> Option<(Name, Name)> {
    let mut domain = Name::from_ascii(domain).ok()?;
    domain.set_fqdn(true);
    let txt_name = Name::from_ascii("_tempmail").ok()?.append_name(&domain).ok()?;
    Some((domain, txt_name))
}
