//! Which records prove a domain, who is asked for them, and what counts as an answer: the
//! library against real name servers on loopback.

mod aliases;
mod authority;
mod bounds;
mod forgery;
mod life;
mod records;
mod recursive;
mod transport;
mod vote;
mod walk;

use tempmail_model::verification::Finding;
use tempmail_runtime::config::DnsMode;
use tempmail_tests::TestDns;
use tempmail_verification::{DomainFindings, ExpectedRecords, Resolver, Transport};

const DOMAIN: &str = "acme.test";
const TXT_NAME: &str = "_tempmail.acme.test";
const TOKEN: &str = "claimant";
const RIGHT_TXT: &str = "tempmail-verify=claimant";
const HOLDER_TOKEN: &str = "holder";
const HOLDER_TXT: &str = "tempmail-verify=holder";
const MX_HOST: &str = "mx.inbox.example";

fn question() -> ExpectedRecords<'static> {
    ExpectedRecords { domain: DOMAIN, token: TOKEN, incumbent_token: None, mx_host: MX_HOST }
}

fn resolver(world: &TestDns) -> Resolver {
    Resolver::new(&world.settings(DnsMode::Authoritative)).unwrap()
}

async fn find(world: &TestDns) -> DomainFindings {
    resolver(world).find(&question(), Transport::UdpFirst).await
}

async fn find_over_tcp(world: &TestDns) -> DomainFindings {
    resolver(world).find(&question(), Transport::TcpOnly).await
}

async fn find_with_holder(world: &TestDns) -> DomainFindings {
    let question = ExpectedRecords { incumbent_token: Some(HOLDER_TOKEN), ..question() };
    resolver(world).find(&question, Transport::UdpFirst).await
}

/// DomainFindings, whatever was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Verdict {
    txt: Finding,
    mx: Finding,
    incumbent_txt: Finding,
}

impl PartialEq<Verdict> for DomainFindings {
    fn eq(&self, other: &Verdict) -> bool {
        (self.txt.finding, self.mx.finding, self.incumbent_txt) == (other.txt, other.mx, other.incumbent_txt)
    }
}

/// DomainFindings of a question in which nobody holds the domain.
fn found(txt: Finding, mx: Finding) -> Verdict {
    Verdict { txt, mx, incumbent_txt: Finding::Unknown }
}
