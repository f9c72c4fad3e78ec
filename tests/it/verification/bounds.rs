//! Tenants choose the name servers: whom that makes us ask, how often and for how long is
//! bounded.

use std::net::IpAddr;
use std::sync::Arc;

use tempmail_model::verification::Finding::{Found, Missing, Unknown};
use tempmail_runtime::config::DnsMode;
use tempmail_tests::TestDns;
use tempmail_tests::dns::{NameServer, NameServerFault};
use tempmail_verification::{ExpectedRecords, Resolver, Transport};
use tokio::task::JoinSet;

use super::{DOMAIN, EXPECTED_TXT, MX_HOST, TOKEN, TXT_NAME, find, find_without_repetition, found, question};

#[tokio::test]
async fn does_not_query_servers_at_private_addresses() {
    let world = TestDns::start().await;
    let servers = world.domain(DOMAIN, 1).await;
    world.set_verified(DOMAIN, TOKEN, MX_HOST).await;
    let mut settings = world.settings(DnsMode::Authoritative);
    settings.allow_private = false;
    let resolver = Resolver::new(&settings).unwrap();
    assert_eq!(resolver.find(&question(), Transport::UdpFirst).await, found(Unknown, Unknown));
    assert_eq!(servers[0].queries(), []);
    assert_ne!(world.seed_server().queries(), [], "the seed is of the configuration");
}

#[tokio::test]
async fn queries_thirteen_servers_of_a_domain() {
    let world = TestDns::start().await;
    let servers = world.domain(DOMAIN, 40).await;
    world.set_verified(DOMAIN, TOKEN, MX_HOST).await;
    assert_eq!(find(&world).await, found(Found, Found));
    assert_eq!(count_asked(&servers), 13);
}

#[tokio::test]
async fn queries_twenty_six_addresses_of_different_servers() {
    let world = TestDns::start().await;
    let servers = world.domain(DOMAIN, 2).await;
    let mut more = Vec::new();
    for _ in 0..40 {
        let server = world.server().await;
        server.add_zone(DOMAIN).await;
        world.add_host(servers[0].host(), server.address().ip()).await;
        more.push(server);
    }
    world.set_verified(DOMAIN, TOKEN, MX_HOST).await;
    find(&world).await;
    let asked = count_asked(&more) + count_asked(&servers);
    assert_eq!(asked, 26);
    assert_ne!(servers[1].queries(), [], "the other host's only address is among them");
}

#[tokio::test]
async fn counts_one_vote_for_an_address_of_several_hosts() {
    let (_world, servers) = find_without_repetition(async |world| {
        let servers = world.domain(DOMAIN, 2).await;
        let shared: IpAddr = servers[0].address().ip();
        world.add_host(servers[1].host(), shared).await;
        servers
    })
    .await;
    assert_eq!(servers[0].queries().len(), 2, "one question for each record");
}

/// A silent server takes 6 s. Two domains of the chain have one, and 10 s are given to all.
#[tokio::test]
async fn counts_the_votes_before_the_deadline() {
    for _ in 0..5 {
        if second_domain_is_queried_before_the_deadline().await {
            return;
        }
        // A busy machine may need all the time for the first one.
    }
    panic!("the second domain of the chain is not queried");
}

/// Asserts what is found, whether that is so or not.
async fn second_domain_is_queried_before_the_deadline() -> bool {
    let world = TestDns::start().await;
    let own = world.domain(DOMAIN, 3).await;
    let second = world.domain("second.test", 2).await;
    let third = world.domain("third.test", 1).await;
    world.set_mx(DOMAIN, &[(10, MX_HOST)]).await;
    own[0].set_txt(TXT_NAME, &[EXPECTED_TXT]).await;
    own[1].set_cname(TXT_NAME, "acme.second.test").await;
    own[2].set_fault(NameServerFault::Silent);
    world.set_cname("acme.second.test", "acme.third.test").await;
    second[1].set_fault(NameServerFault::Silent);
    world.set_txt("acme.third.test", &["tempmail-verify=another"]).await;
    assert_eq!(find(&world).await, found(Found, Found));
    assert_eq!(third[0].queries(), [], "its turn would have come after 12 s");
    !second[0].queries().is_empty()
}

#[tokio::test]
async fn checks_fifty_domains_at_a_time() {
    let world = TestDns::start().await;
    let mut domains = Vec::new();
    let server = world.server().await;
    for number in 0..60 {
        let domain = format!("acme{number}.test");
        world.delegate(&domain, &[&server]).await;
        domains.push(domain);
    }
    let hold = world.seed_server().hold_replies();
    let resolver = Arc::new(super::resolver(&world));
    let mut finds = JoinSet::new();
    for domain in domains {
        let resolver = Arc::clone(&resolver);
        finds.spawn(async move {
            let question = ExpectedRecords { domain: &domain, ..question() };
            resolver.find(&question, Transport::UdpFirst).await
        });
    }
    let names = async || {
        let mut names: Vec<_> =
            world.seed_server().queries().iter().map(|asked| asked.name.to_ascii_lowercase()).collect();
        names.sort();
        names.dedup();
        (names.len() >= 50).then_some(names.len())
    };
    let asked = tempmail_tests::wait::eventually("the places are taken", names).await;
    assert_eq!(asked, 50, "the others wait");
    hold.release();
    let findings = finds.join_all().await;
    assert_eq!(findings, vec![found(Missing, Missing); 60], "each had its turn");
}

/// 120 questions to an address that is asked 50 a second.
#[tokio::test]
async fn delays_queries_over_the_rate_limit() {
    let world = TestDns::start().await;
    let server = world.server().await;
    let resolver = Arc::new(super::resolver(&world));
    let mut finds = JoinSet::new();
    for number in 0..60 {
        let domain = format!("acme{number}.test");
        world.delegate(&domain, &[&server]).await;
        let resolver = Arc::clone(&resolver);
        finds.spawn(async move {
            let question = ExpectedRecords { domain: &domain, ..question() };
            resolver.find(&question, Transport::UdpFirst).await
        });
    }
    assert_eq!(finds.join_all().await, vec![found(Missing, Missing); 60]);
}

fn count_asked(servers: &[NameServer]) -> usize {
    servers.iter().filter(|server| !server.queries().is_empty()).count()
}
