//! Several servers: at least one must answer, and every one that does must have the record.

use hickory_proto::rr::RecordType;
use tempmail_model::verification::Finding::{Found, Mismatch, Missing, Unknown};
use tempmail_tests::TestDns;
use tempmail_tests::dns::NameServerFault;

use super::{DOMAIN, MX_HOST, TOKEN, TXT_NAME, find, find_with_incumbent, found};

#[tokio::test]
async fn requires_the_records_from_every_server_that_answers() {
    let world = TestDns::start().await;
    let servers = world.domain(DOMAIN, 3).await;
    world.set_verified(DOMAIN, TOKEN, MX_HOST).await;
    servers[1].clear(TXT_NAME).await;
    servers[1].clear(DOMAIN).await;
    assert_eq!(find(&world).await, found(Missing, Missing), "one has not heard of them yet");
    servers[1].set_txt(TXT_NAME, &["tempmail-verify=another"]).await;
    servers[1].set_mx(DOMAIN, &[(10, "elsewhere.example")]).await;
    assert_eq!(find(&world).await, found(Mismatch, Mismatch));
    servers[2].clear(TXT_NAME).await;
    assert_eq!(
        find(&world).await.txt.finding,
        Mismatch,
        "which tells the owner more than that it is missing"
    );
}

#[tokio::test]
async fn counts_no_vote_for_a_failing_server() {
    let world = TestDns::start().await;
    let servers = world.domain(DOMAIN, 3).await;
    world.set_verified(DOMAIN, TOKEN, MX_HOST).await;
    servers[0].set_fault(NameServerFault::ServFail);
    servers[1].set_fault(NameServerFault::Refused);
    assert_eq!(find(&world).await, found(Found, Found));
    servers[2].clear(TXT_NAME).await;
    assert_eq!(find(&world).await, found(Missing, Found), "the third has");
}

#[tokio::test]
async fn reports_unknown_without_votes() {
    let world = TestDns::start().await;
    let servers = world.domain(DOMAIN, 2).await;
    world.set_verified(DOMAIN, TOKEN, MX_HOST).await;
    servers[0].set_fault(NameServerFault::ServFail);
    servers[1].set_fault(NameServerFault::Refused);
    let findings = find_with_incumbent(&world).await;
    assert_eq!(findings, found(Unknown, Unknown), "neither is the incumbent's record absent");
}

#[tokio::test]
async fn counts_no_vote_for_a_silent_server() {
    let world = TestDns::start().await;
    let servers = world.domain(DOMAIN, 2).await;
    world.set_verified(DOMAIN, TOKEN, MX_HOST).await;
    servers[0].set_fault(NameServerFault::Silent);
    assert_eq!(find(&world).await, found(Found, Found));
    let asked = servers[0].queries();
    let txt = asked.iter().filter(|asked| asked.record_type == RecordType::TXT);
    let over_tcp: Vec<_> = txt.map(|asked| asked.over_tcp).collect();
    assert_eq!(over_tcp.iter().filter(|over_tcp| !**over_tcp).count(), 2, "it was asked twice over UDP");
    assert_eq!(over_tcp.len(), 3, "and once over TCP");
}

#[tokio::test]
async fn counts_no_vote_for_a_closed_port() {
    let world = TestDns::start().await;
    let servers = world.domain(DOMAIN, 1).await;
    world.set_verified(DOMAIN, TOKEN, MX_HOST).await;
    for unanswered in ["127.255.255.1", "::1"] {
        world.add_host(servers[0].host(), unanswered.parse().unwrap()).await;
    }
    assert_eq!(find(&world).await, found(Found, Found));
}

#[tokio::test]
async fn waits_for_a_slow_server() {
    let world = TestDns::start().await;
    let servers = world.domain(DOMAIN, 2).await;
    world.set_verified(DOMAIN, TOKEN, MX_HOST).await;
    servers[1].set_txt(TXT_NAME, &["tempmail-verify=another"]).await;
    let hold = servers[1].hold_replies();
    let (findings, ()) = tokio::join!(find(&world), async {
        hold.query_received().await;
        hold.release();
    });
    assert_eq!(findings, found(Mismatch, Found), "though the other had voted");
}
