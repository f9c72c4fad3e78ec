//! Redis grants no access: what a hint says of a message is checked in Postgres.

use tempmail_model::token::TokenKind;
use tempmail_tests::wait::eventually;
use tempmail_tests::{Fleet, RedisServer};
use uuid::Uuid;

use super::super::fixture::redis_is_connected;
use super::subscriber::{Subscriber, Transport};

/// A message of the bus channel with one arrival, as a process of this version sends it.
fn hint(seq: i64, id: Uuid, hours: u16, tenant: Uuid, owner: Uuid, inbox: Uuid) -> Vec<u8> {
    let mut bytes = vec![1, 1];
    bytes.extend(Uuid::new_v4().as_bytes());
    bytes.extend(seq.to_be_bytes());
    bytes.extend(id.as_bytes());
    bytes.extend(hours.to_be_bytes());
    bytes.push(1);
    for id in [tenant, owner, inbox] {
        bytes.extend(id.as_bytes());
    }
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_hint_discloses_no_foreign_mail() {
    let redis = RedisServer::new();
    let fleet = Fleet::builder().apis(1).ingests(1).workers(0).redis(&redis.url()).start().await;
    redis_is_connected(&fleet).await;
    let thief = fleet.another_tenant("thief").await;
    let theirs = fleet.mailbox(Some(&thief.pro), "theirs@inbox.localhost").await;
    let ours = fleet.mailbox(Some(&fleet.tenant.pro), "ours@inbox.localhost").await;
    let live = fleet.token(&thief, TokenKind::Live).await;
    let subscribers = [
        Transport::LongPoll { path: "/v1/me".to_owned(), token: live.clone() },
        Transport::Sse { address: None, token: live.clone() },
        Transport::Sse { address: Some(theirs.address.clone()), token: live },
        Transport::WebSocket { jwt: theirs.jwt.clone() },
    ]
    .map(|transport| Subscriber::start(fleet.http(0), transport, None));
    for subscriber in &subscribers {
        eventually("it is subscribed", || async { subscriber.received().is_ready.then_some(()) }).await;
    }
    fleet.deliver(0, &ours.address, "ours").await;
    let id = fleet.stored_message_ids(&ours.address).await[0];
    let seq: i64 = sqlx::query_scalar("SELECT seq FROM stream").fetch_one(&fleet.pool).await.unwrap();

    let hint = hint(seq + 1, id, 72, thief.id, theirs.id, theirs.id);
    eventually("both processes are subscribed", || async {
        let channels: Vec<String> = redis.query(&["PUBSUB", "CHANNELS"]);
        let mut publish = redis::cmd("PUBLISH");
        let receivers: usize =
            publish.arg(channels.first()?).arg(&hint).query(&mut redis.connection()).unwrap();
        (receivers == 2).then_some(())
    })
    .await;
    // The first of these has the stream position of the hint.
    for subject in ["theirs 1", "theirs 2"] {
        fleet.deliver(0, &theirs.address, subject).await;
    }
    for subscriber in &subscribers {
        let last = || async { (subscriber.received().subjects.last()? == "theirs 2").then_some(()) };
        eventually("their own mail arrives", last).await;
        assert!(!subscriber.received().subjects.contains(&"ours".to_owned()), "{:?}", subscriber.transport());
    }
}
