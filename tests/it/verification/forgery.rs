//! Answers that don't answer the question are not heard, though they come first.

use tempmail_tests::DnsWorld;
use tempmail_tests::dns::Forgery;
use tempmail_verification::Finding::{Right, Unknown};

use super::{DOMAIN, MX_HOST, TOKEN, find, found};

async fn world_behind(forgery: Forgery) -> DnsWorld {
    let world = DnsWorld::start().await;
    let server = world.server_behind(forgery).await;
    world.delegate(DOMAIN, &[&server]).await;
    world.set_verified(DOMAIN, TOKEN, MX_HOST).await;
    world
}

#[tokio::test]
async fn an_answer_with_another_id() {
    let world = world_behind(Forgery::WrongId).await;
    assert_eq!(find(&world).await, found(Right, Right));
}

#[tokio::test]
async fn an_answer_to_another_question() {
    let world = world_behind(Forgery::WrongQuestion).await;
    assert_eq!(find(&world).await, found(Right, Right));
}

#[tokio::test]
async fn an_answer_from_another_address() {
    let world = world_behind(Forgery::WrongAddress).await;
    assert_eq!(find(&world).await, found(Right, Right));
}

#[tokio::test]
async fn something_that_is_no_message() {
    let world = world_behind(Forgery::Garbage).await;
    assert_eq!(find(&world).await, found(Right, Right));
}

#[tokio::test]
async fn an_answer_that_changes_the_case_of_the_name_sends_us_to_tcp() {
    let world = world_behind(Forgery::WrongCase).await;
    assert_eq!(find(&world).await, found(Right, Right));
}

#[tokio::test]
async fn an_answer_that_changes_the_case_of_the_name_is_no_vote_without_tcp() {
    let world = DnsWorld::start().await;
    let server = world.server_behind_without_tcp(Forgery::WrongCase).await;
    world.delegate(DOMAIN, &[&server]).await;
    world.set_verified(DOMAIN, TOKEN, MX_HOST).await;
    assert_eq!(find(&world).await, found(Unknown, Unknown));
}
