//! Only authoritative answers count, and none is cached.

use hickory_proto::rr::RecordType;
use tempmail_model::verification::Finding::{Found, Mismatch, Missing, Unknown};
use tempmail_tests::TestDns;
use tempmail_tests::dns::NameServerFault;
use tempmail_verification::Transport;

use super::{
    DOMAIN, EXPECTED_TXT, MX_HOST, TOKEN, TXT_NAME, find, find_without_repetition, found, question, resolver,
};

#[tokio::test]
async fn counts_no_vote_for_an_answer_without_authority() {
    let world = TestDns::start().await;
    let servers = world.domain(DOMAIN, 2).await;
    world.set_verified(DOMAIN, TOKEN, MX_HOST).await;
    servers[0].clear(TXT_NAME).await;
    servers[0].set_fault(NameServerFault::Lame);
    assert_eq!(find(&world).await, found(Found, Found), "its NXDOMAIN does not count");
    servers[1].set_fault(NameServerFault::Lame);
    assert_eq!(find(&world).await, found(Unknown, Unknown), "nor does its right answer");
}

#[tokio::test]
async fn counts_no_vote_for_a_referral() {
    let world = TestDns::start().await;
    let servers = world.domain(DOMAIN, 1).await;
    world.set_verified(DOMAIN, TOKEN, MX_HOST).await;
    for authoritative in [false, true] {
        servers[0].set_fault(NameServerFault::Referral { authoritative });
        assert_eq!(find(&world).await, found(Unknown, Unknown), "{authoritative}");
    }
}

/// The trap of every checker that asks through a resolver: it asked too early, and the
/// resolver remembers for hours that there was nothing.
#[tokio::test]
async fn ignores_the_cache_of_the_seed() {
    let world = TestDns::start().await;
    world.domain(DOMAIN, 1).await;
    world.set_verified(DOMAIN, TOKEN, MX_HOST).await;
    assert_eq!(find(&world).await, found(Found, Found), "the seed says that there is no such name");

    world.seed_server().set_txt(TXT_NAME, &[EXPECTED_TXT]).await;
    world.seed_server().set_mx(DOMAIN, &[(10, MX_HOST)]).await;
    world.clear(TXT_NAME).await;
    world.clear(DOMAIN).await;
    assert_eq!(find(&world).await, found(Missing, Missing), "the seed has the records of yesterday");
}

#[tokio::test]
async fn caches_no_answer() {
    let world = TestDns::start().await;
    let servers = world.domain(DOMAIN, 1).await;
    let resolver = resolver(&world);
    assert_eq!(resolver.find(&question(), Transport::UdpFirst).await, found(Missing, Missing));
    world.set_verified(DOMAIN, TOKEN, MX_HOST).await;
    assert_eq!(resolver.find(&question(), Transport::UdpFirst).await, found(Found, Found));
    world.set_txt(TXT_NAME, &["tempmail-verify=another"]).await;
    assert_eq!(resolver.find(&question(), Transport::UdpFirst).await, found(Mismatch, Found));

    // Neither is who is responsible.
    world.domain(DOMAIN, 1).await;
    world.set_verified(DOMAIN, TOKEN, MX_HOST).await;
    let before = servers[0].queries().len();
    assert_eq!(resolver.find(&question(), Transport::UdpFirst).await, found(Found, Found));
    assert_eq!(servers[0].queries().len(), before, "the former server is not asked");
}

#[tokio::test]
async fn queries_without_recursion_in_random_case() {
    let mut asked = Vec::new();
    for _ in 0..8 {
        let (_world, servers) = find_without_repetition(async |world| world.domain(DOMAIN, 1).await).await;
        asked.extend(servers[0].queries());
    }
    assert!(
        asked
            .iter()
            .all(|asked| !asked.recursion_desired && asked.udp_payload_size == Some(1232) && !asked.over_tcp)
    );
    let mut types: Vec<_> = asked.iter().map(|asked| asked.record_type).collect();
    types.sort();
    assert_eq!(
        types,
        [[RecordType::MX; 8], [RecordType::TXT; 8]].concat(),
        "each server once for each record"
    );
    let mut names: Vec<_> = asked.iter().map(|asked| &asked.name).collect();
    assert!(
        names
            .iter()
            .all(|name| ["acme.test.", "_tempmail.acme.test."].contains(&&*name.to_ascii_lowercase()))
    );
    names.sort();
    names.dedup();
    assert!(names.len() > 2, "{names:?}");
}
