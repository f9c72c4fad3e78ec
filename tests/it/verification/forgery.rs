//! Forged replies are ignored, also where they arrive before the real one.

use tempmail_model::verification::Finding::{Found, Unknown};
use tempmail_tests::TestDns;
use tempmail_tests::dns::{NameServer, SpoofedReply};

use super::{DOMAIN, MX_HOST, TOKEN, find, found};

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
