//! Which records prove a domain, who is asked for them, and what counts as an answer: the
//! library against real name servers on loopback.

mod aliases;
mod authority;
mod bounds;
mod life;
mod records;
mod recursive;
mod transport;
mod vote;
mod walk;

use std::time::{Duration, Instant};

use tempmail_model::verification::Finding;
use tempmail_runtime::config::DnsMode;
use tempmail_tests::TestDns;
use tempmail_verification::{DomainFindings, ExpectedRecords, Resolver, Transport};

const DOMAIN: &str = "acme.test";
const TXT_NAME: &str = "_tempmail.acme.test";
const TOKEN: &str = "claimant";
const EXPECTED_TXT: &str = "tempmail-verify=claimant";
const INCUMBENT_TOKEN: &str = "incumbent";
const INCUMBENT_TXT: &str = "tempmail-verify=incumbent";
const MX_HOST: &str = "mx.inbox.example";
/// A query without an answer within this time is repeated.
const ATTEMPT: Duration = Duration::from_secs(3);

fn question() -> ExpectedRecords<'static> {
    ExpectedRecords { domain: DOMAIN, token: TOKEN, incumbent_token: None, mx_host: MX_HOST }
}

fn resolver(world: &TestDns) -> Resolver {
    Resolver::new(&world.settings(DnsMode::Authoritative)).unwrap()
}

async fn find(world: &TestDns) -> DomainFindings {
    resolver(world).find(&question(), Transport::UdpFirst).await
}

/// Finds the records in a DNS that `set_up` has prepared, each time in a new one, until no query can have
/// been repeated, as on a busy machine. Returns that DNS, and what `set_up` returned.
async fn find_without_repetition<T>(set_up: impl AsyncFn(&TestDns) -> T) -> (TestDns, T) {
    loop {
        let world = TestDns::start().await;
        let prepared = set_up(&world).await;
        let started = Instant::now();
        find(&world).await;
        if started.elapsed() < ATTEMPT {
            return (world, prepared);
        }
    }
}

async fn find_over_tcp(world: &TestDns) -> DomainFindings {
    resolver(world).find(&question(), Transport::TcpOnly).await
}

async fn find_with_incumbent(world: &TestDns) -> DomainFindings {
    let question = ExpectedRecords { incumbent_token: Some(INCUMBENT_TOKEN), ..question() };
    resolver(world).find(&question, Transport::UdpFirst).await
}

/// [`DomainFindings`] without what name servers had in place of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ExpectedFindings {
    txt: Finding,
    mx: Finding,
    incumbent_txt: Finding,
}

impl PartialEq<ExpectedFindings> for DomainFindings {
    fn eq(&self, other: &ExpectedFindings) -> bool {
        (self.txt.finding, self.mx.finding, self.incumbent_txt) == (other.txt, other.mx, other.incumbent_txt)
    }
}

/// What is found about a domain that no other tenant has.
fn found(txt: Finding, mx: Finding) -> ExpectedFindings {
    ExpectedFindings { txt, mx, incumbent_txt: Finding::Unknown }
}
