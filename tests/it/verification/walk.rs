//! How the servers of a name are found.

use hickory_proto::rr::RecordType;
use tempmail_model::verification::Finding::{Found, Missing, Unknown};
use tempmail_runtime::config::DnsMode;
use tempmail_tests::TestDns;
use tempmail_tests::dns::NameServerFault;
use tempmail_verification::{ExpectedRecords, Resolver, Transport};

use super::{DOMAIN, EXPECTED_TXT, MX_HOST, TOKEN, TXT_NAME, find, find_without_repetition, found, question};

#[tokio::test]
async fn queries_the_servers_of_the_zone_for_a_name_below_it() {
    let world = TestDns::start().await;
    world.domain(DOMAIN, 1).await;
    let deep = ExpectedRecords { domain: "a.b.c.acme.test", ..question() };
    world.set_verified(deep.domain, TOKEN, MX_HOST).await;
    let findings = super::resolver(&world).find(&deep, Transport::UdpFirst).await;
    assert_eq!(findings, found(Found, Found));
}

#[tokio::test]
async fn queries_the_nearest_zone() {
    let world = TestDns::start().await;
    let parents = world.domain(DOMAIN, 1).await;
    let child = ExpectedRecords { domain: "shop.acme.test", ..question() };
    world.domain(child.domain, 1).await;
    world.set_verified(child.domain, TOKEN, MX_HOST).await;
    let findings = super::resolver(&world).find(&child, Transport::UdpFirst).await;
    assert_eq!(findings, found(Found, Found));
    assert_eq!(parents[0].queries(), []);
}

#[tokio::test]
async fn accepts_a_zone_of_the_verification_name() {
    let world = TestDns::start().await;
    world.domain(DOMAIN, 1).await;
    world.set_mx(DOMAIN, &[(10, MX_HOST)]).await;
    world.domain(TXT_NAME, 1).await;
    world.set_txt(TXT_NAME, &[EXPECTED_TXT]).await;
    assert_eq!(find(&world).await, found(Found, Found));
}

/// Some servers can't answer for the type NS below their apex.
#[tokio::test]
async fn continues_at_the_parent_after_a_failure_of_the_seed() {
    let world = TestDns::start().await;
    world.domain(DOMAIN, 1).await;
    world.set_verified(DOMAIN, TOKEN, MX_HOST).await;
    world.seed_server().set_fault_for(&format!("{TXT_NAME}."), NameServerFault::ServFail);
    assert_eq!(find(&world).await, found(Found, Found));
}

#[tokio::test]
async fn reports_unknown_for_a_domain_that_is_not_delegated() {
    let world = TestDns::start().await;
    assert_eq!(find(&world).await, found(Unknown, Unknown), "the root and `test` have no servers here");
    world.seed_server().set_fault(NameServerFault::ServFail);
    assert_eq!(find(&world).await, found(Unknown, Unknown), "the seed fails");
}

#[tokio::test]
async fn reports_missing_for_a_domain_unknown_to_its_parent() {
    let world = TestDns::start().await;
    world.domain("test", 1).await;
    assert_eq!(find(&world).await, found(Missing, Missing));
}

#[tokio::test]
async fn accepts_the_answer_of_one_seed() {
    let world = TestDns::start().await;
    world.domain(DOMAIN, 1).await;
    world.set_verified(DOMAIN, TOKEN, MX_HOST).await;
    let refusing = world.server().await;
    let silent = world.server().await;
    refusing.set_fault(NameServerFault::Refused);
    silent.set_fault(NameServerFault::Silent);
    let mut settings = world.settings(DnsMode::Authoritative);
    settings.servers = vec![refusing.address(), silent.address(), world.seed()];
    let resolver = Resolver::new(&settings).unwrap();
    assert_eq!(resolver.find(&question(), Transport::UdpFirst).await, found(Found, Found));
}

#[tokio::test]
async fn queries_seeds_only_to_find_the_servers() {
    let (world, _) = find_without_repetition(async |world| world.domain(DOMAIN, 1).await).await;
    let asked = world.seed_server().queries();
    assert!(asked.iter().all(|asked| asked.recursion_desired));
    let types: Vec<_> = asked.iter().map(|asked| asked.record_type).collect();
    assert_eq!(types[..2], [RecordType::NS, RecordType::NS], "the TXT record's name, and its zone");
    assert_eq!(types.len(), 4, "then the server's addresses, once for both records");
    assert!(types.contains(&RecordType::A) && types.contains(&RecordType::AAAA));
}
