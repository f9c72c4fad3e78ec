//! Over which transport servers are asked, and forged replies, which are ignored also where they arrive before the
//! real one.

use hickory_proto::rr::RecordType;
use tempmail_model::verification::Finding::{Found, Mismatch, Missing, Unknown};
use tempmail_tests::TestDns;
use tempmail_tests::dns::{NameServer, NameServerFault, SpoofedReply};
use tempmail_tests::wait::eventually;

use super::{DOMAIN, EXPECTED_TXT, MX_HOST, TOKEN, TXT_NAME, find, find_over_tcp, found};

#[tokio::test]
async fn fetches_an_answer_too_large_for_udp_over_tcp() {
    let world = TestDns::start().await;
    world.domain(DOMAIN, 1).await;
    let others: Vec<_> = (0..30).map(|number| format!("{number:0200}")).collect();
    let mut texts: Vec<_> = others.iter().map(String::as_str).collect();
    texts.push(EXPECTED_TXT);
    world.set_txt(TXT_NAME, &texts).await;
    assert_eq!(find(&world).await.txt.finding, Found);
}

#[tokio::test]
async fn does_not_read_a_truncated_answer_as_empty() {
    let world = TestDns::start().await;
    let servers = world.domain(DOMAIN, 1).await;
    world.set_verified(DOMAIN, TOKEN, MX_HOST).await;
    servers[0].set_fault(NameServerFault::Truncated);
    assert_eq!(find(&world).await, found(Found, Found));

    let without = world.server_without_tcp().await;
    world.delegate(DOMAIN, &[&without]).await;
    world.set_verified(DOMAIN, TOKEN, MX_HOST).await;
    without.set_fault(NameServerFault::Truncated);
    assert_eq!(find(&world).await, found(Unknown, Unknown), "nobody brings the rest");
}

#[tokio::test]
async fn sends_the_deciding_query_over_tcp() {
    let world = TestDns::start().await;
    let servers = world.domain(DOMAIN, 1).await;
    world.set_mx(DOMAIN, &[(10, MX_HOST)]).await;
    servers[0].set_fault(NameServerFault::SpoofedUdp(vec![EXPECTED_TXT.to_owned()]));
    assert_eq!(find(&world).await, found(Found, Found), "a forger of UDP is believed");
    assert_eq!(find_over_tcp(&world).await, found(Missing, Found), "but not here");

    world.set_txt(TXT_NAME, &[EXPECTED_TXT]).await;
    servers[0].set_fault(NameServerFault::SpoofedUdp(Vec::new()));
    assert_eq!(find(&world).await, found(Missing, Found));
    assert_eq!(find_over_tcp(&world).await, found(Found, Found));
}

#[tokio::test]
async fn prefers_the_answer_over_tcp_to_a_faster_one_over_udp() {
    let world = TestDns::start().await;
    let servers = world.domain(DOMAIN, 1).await;
    let hold = servers[0].spoof_udp_and_hold_tcp(&[EXPECTED_TXT]);
    let (findings, ()) = tokio::join!(find_over_tcp(&world), async {
        hold.query_received().await;
        eventually("the forged response is sent", async || {
            servers[0]
                .queries()
                .iter()
                .find(|asked| asked.record_type == RecordType::TXT && !asked.over_tcp)
                .cloned()
        })
        .await;
        hold.release();
    });
    assert_eq!(findings, found(Missing, Missing));
}

#[tokio::test]
async fn finds_servers_over_tcp_for_the_deciding_query() {
    let world = TestDns::start().await;
    world.domain(DOMAIN, 1).await;
    world.set_verified(DOMAIN, TOKEN, MX_HOST).await;
    world.seed_server().set_fault(NameServerFault::Truncated);
    assert_eq!(find_over_tcp(&world).await, found(Found, Found));
    assert!(world.seed_server().queries().iter().any(|asked| asked.over_tcp));
}

#[tokio::test]
async fn counts_the_vote_of_a_server_that_refuses_tcp() {
    let world = TestDns::start().await;
    let without = world.server_without_tcp().await;
    world.delegate(DOMAIN, &[&without]).await;
    world.set_verified(DOMAIN, TOKEN, MX_HOST).await;
    assert_eq!(find_over_tcp(&world).await, found(Found, Found));
    without.set_txt(TXT_NAME, &["tempmail-verify=another"]).await;
    assert_eq!(find_over_tcp(&world).await, found(Mismatch, Found));
}

#[tokio::test]
async fn counts_the_vote_of_a_server_that_is_silent_over_tcp() {
    let world = TestDns::start().await;
    let servers = world.domain(DOMAIN, 2).await;
    world.set_verified(DOMAIN, TOKEN, MX_HOST).await;
    servers[1].set_txt(TXT_NAME, &["tempmail-verify=another"]).await;
    servers[1].set_fault(NameServerFault::SilentOverTcp);
    assert_eq!(find_over_tcp(&world).await, found(Mismatch, Found));
}

async fn publish(world: &TestDns, server: &NameServer) {
    world.delegate(DOMAIN, &[server]).await;
    world.set_verified(DOMAIN, TOKEN, MX_HOST).await;
}

/// TCP, which would help in each case, is not there.
async fn assert_not_heard(forgery: SpoofedReply) {
    let world = TestDns::start().await;
    publish(&world, &world.spoofed_server_without_tcp(forgery).await).await;
    assert_eq!(find(&world).await, found(Found, Found));
}

#[tokio::test]
async fn ignores_an_answer_with_another_id() {
    assert_not_heard(SpoofedReply::WrongId).await;
}

#[tokio::test]
async fn ignores_an_answer_to_another_query() {
    assert_not_heard(SpoofedReply::WrongQuestion).await;
}

#[tokio::test]
async fn ignores_an_answer_from_another_address() {
    assert_not_heard(SpoofedReply::WrongAddress).await;
}

#[tokio::test]
async fn ignores_a_datagram_that_is_not_a_message() {
    assert_not_heard(SpoofedReply::Garbage).await;
}

/// Some servers don't keep the case.
#[tokio::test]
async fn repeats_a_query_over_tcp_if_the_case_of_the_name_differs() {
    let world = TestDns::start().await;
    publish(&world, &world.spoofed_server(SpoofedReply::WrongCase).await).await;
    assert_eq!(find(&world).await, found(Found, Found));
}

#[tokio::test]
async fn counts_no_vote_if_the_case_of_the_name_differs_without_tcp() {
    let world = TestDns::start().await;
    publish(&world, &world.spoofed_server_without_tcp(SpoofedReply::WrongCase).await).await;
    assert_eq!(find(&world).await, found(Unknown, Unknown));
}
