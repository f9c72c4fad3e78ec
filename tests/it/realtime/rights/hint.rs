//! Redis decides no right: what it says of a message is looked up.

use tempmail_model::token::TokenKind;
use tempmail_tests::wait::eventually;
use tempmail_tests::{Fleet, RedisServer};
use uuid::Uuid;

use super::listener::{Listener, Way};

/// A message of the channel, as a process of this version sends it, of one arrival.
fn hint(seq: i64, id: Uuid, hours: u16, tenant: Uuid, owner: Uuid, inbox: Uuid) -> Vec<u8> {
    let mut octets = vec![1, 1];
    octets.extend(Uuid::new_v4().as_bytes());
    octets.extend(seq.to_be_bytes());
    octets.extend(id.as_bytes());
    octets.extend(hours.to_be_bytes());
    octets.push(1);
    for id in [tenant, owner, inbox] {
        octets.extend(id.as_bytes());
    }
    octets
}

#[tokio::test(flavor = "multi_thread")]
async fn a_false_hint_shows_nobody_anothers_mail() {
    let redis = RedisServer::new();
    let fleet = Fleet::builder().apis(1).ingests(1).workers(0).redis(&redis.url()).start().await;
    let thief = fleet.another_tenant("thief").await;
    let theirs = fleet.mailbox(Some(&thief.pro), "theirs@inbox.localhost").await;
    let ours = fleet.mailbox(Some(&fleet.tenant.pro), "ours@inbox.localhost").await;
    let live = fleet.token(&thief, TokenKind::Live).await;
    let listeners = [
        Way::Polls { path: "/v1/me".to_owned(), token: live.clone() },
        Way::Stream { address: None, token: live.clone() },
        Way::Stream { address: Some(theirs.address.clone()), token: live },
        Way::Socket { jwt: theirs.jwt.clone() },
    ]
    .map(|way| Listener::start(fleet.http(0), way, None));
    for listener in &listeners {
        eventually("it listens", || async { listener.seen().listens.then_some(()) }).await;
    }
    fleet.deliver(0, &ours.address, "ours").await;
    let id = fleet.stored_message_ids(&ours.address).await[0];
    let seq: i64 = sqlx::query_scalar("SELECT seq FROM stream").fetch_one(&fleet.pool).await.unwrap();

    let channels: Vec<String> = redis.query(&["PUBSUB", "CHANNELS"]);
    let hint = hint(seq + 1, id, 72, thief.id, theirs.id, theirs.id);
    let told: usize =
        redis::cmd("PUBLISH").arg(&channels[0]).arg(hint).query(&mut redis.connection()).unwrap();
    assert!(told > 0, "somebody is told");
    // The first of these has the place in the stream that the hint took.
    for subject in ["theirs 1", "theirs 2"] {
        fleet.deliver(0, &theirs.address, subject).await;
    }
    for listener in &listeners {
        let last = || async { (listener.seen().subjects.last()? == "theirs 2").then_some(()) };
        eventually("their own mail comes", last).await;
        assert!(!listener.seen().subjects.contains(&"ours".to_owned()), "{:?}", listener.way());
    }
}
