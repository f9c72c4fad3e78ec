//! Asks DNS for the records that prove a domain.
//!
//! The domain's own name servers are asked, each address of each of them, with no cache
//! between: what the owner has just set is seen, and no resolver's memory of its absence is.
//! The seeds (resolvers) only tell which servers those are.

mod ask;
mod check;
mod kind;
mod reading;
mod wire;
mod zone;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use hickory_proto::rr::Name;
use hickory_resolver::system_conf::read_system_conf;
use tempmail_bus::RateLimit;
use tempmail_runtime::config::{Dns, DnsMode};
use tokio::join;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use self::check::Check;
use self::kind::{MX, TXT};
use crate::finding::{DomainFindings, ExpectedRecords, tally};

/// Longest that one domain takes, once its turn has come. What has answered by then votes.
const PER_DOMAIN: Duration = Duration::from_secs(10);
/// Domains asked about at a time.
const IN_FLIGHT: usize = 50;
/// Questions a second to one address of a name server, at most: tenants choose those servers,
/// and many domains share them.
const QUESTIONS_PER_SECOND: u32 = 50;

/// How the servers are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Over UDP, and over TCP where UDP does not bring the whole answer.
    UdpFirst,
    /// Over TCP, which nobody forges from afar, wherever the server speaks it: for the
    /// question that decides. What a server that does not speak it says over UDP counts.
    TcpOnly,
}

/// Why there is no resolver.
#[derive(Debug, thiserror::Error)]
pub enum ResolverError {
    /// `dns.servers` names none, and the system's can't be read.
    #[error("the system's DNS servers can't be read ({0}): name some in `dns.servers`")]
    SystemServers(#[source] io::Error),
}

/// Asks DNS about domains. Keeps no answers.
#[derive(Debug)]
pub struct Resolver {
    mode: DnsMode,
    seeds: Vec<SocketAddr>,
    port: u16,
    allow_private: bool,
    turns: Semaphore,
    pace: RateLimit,
}

impl Resolver {
    /// A resolver; reads the system's servers if the settings name none.
    ///
    /// # Errors
    /// [`ResolverError::SystemServers`].
    pub fn new(settings: &Dns) -> Result<Self, ResolverError> {
        let seeds = if settings.servers.is_empty() { system_servers()? } else { settings.servers.clone() };
        Ok(Self {
            mode: settings.mode,
            seeds,
            port: settings.port,
            allow_private: settings.allow_private,
            turns: Semaphore::new(IN_FLIGHT),
            pace: RateLimit::new("dns-questions", QUESTIONS_PER_SECOND, Duration::from_secs(1)),
        })
    }

    /// What the domain's servers say. Waits while 50 other domains are asked about, then takes
    /// at most 10 s. A domain that is no name of DNS is [`DomainFindings::UNKNOWN`].
    pub async fn find(&self, question: &ExpectedRecords<'_>, transport: Transport) -> DomainFindings {
        let Some((domain, txt_name)) = names(question.domain) else { return DomainFindings::UNKNOWN };
        let _turn = self.turns.acquire().await.expect("the semaphore is never closed");
        let start = Instant::now();
        let check = Check::new(self, transport, start + PER_DOMAIN);
        let zone = check.zone_of(&txt_name).await;
        let domain_zone = if zone.holds(&domain) { zone.clone() } else { check.zone_of(&domain).await };
        let (mut txt, mx) =
            join!(check.records(&zone, &txt_name, &TXT), check.records(&domain_zone, &domain, &MX));
        check.follow_aliases(txt_name, &mut txt).await;
        let findings = tally(question, &txt, &mx);
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
