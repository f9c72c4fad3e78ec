//! Access ends at every process: subscribers are disconnected within 5 s, whatever revoked their access, with or
//! without Redis; and mail of a new owner never reaches a former one.

mod cause;
mod fixture;
pub mod matrix;
mod ownership_change;
mod subscriber;

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::Value;
use tempmail_model::token::TokenKind;
use tempmail_tests::wait::eventually;
use tempmail_tests::{EventStream, Fleet, RedisServer, Response, Tenant};
use tokio::task::JoinHandle;
use uuid::Uuid;

use self::subscriber::{Subscriber, Transport};
use super::fixture::redis_is_connected;

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

/// What happens to the first mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstMail {
    Stays,
    MessageDeleted,
    InboxCleared,
    MailboxDeleted,
    DomainLost,
    DomainMailboxLost,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pending_long_poll_drops_mail_that_became_unreadable() {
    use FirstMail::*;
    let fleet = Fleet::builder().apis(2).ingests(1).workers(0).start().await;
    let cases = [Stays, MessageDeleted, InboxCleared, MailboxDeleted, DomainLost, DomainMailboxLost];
    let waits = join_all(cases.map(|case| begin(&fleet, case, cases.len()))).await;
    // A draining process responds with what it has.
    let (_, responses) = tokio::join!(fleet.api(1).terminate(), join_all(waits));
    for (case, response) in cases.iter().zip(responses) {
        let response = response.unwrap();
        let expected = if *case == Stays { 200 } else { 204 };
        assert_eq!(response.status, expected, "{case:?}: {}", response.text());
    }
}

/// Starts a wait for two mails, delivers the first one once all `cases` wait, and applies what happens to it.
async fn begin(fleet: &Fleet, case: FirstMail, cases: usize) -> JoinHandle<Response> {
    let name = format!("{case:?}").to_lowercase();
    let tenant = fleet.another_tenant(&name).await;
    let domain = fleet.custom_domain(&tenant, &format!("{name}.test")).await;
    let address = match case {
        FirstMail::DomainLost | FirstMail::DomainMailboxLost => format!("box@{name}.test"),
        _ => format!("{name}@inbox.localhost"),
    };
    let mailbox = match case {
        FirstMail::DomainLost => None,
        _ => Some(fleet.mailbox(Some(&tenant.pro), &address).await),
    };
    let wait = wait(fleet, &tenant, 2).await;
    eventually("all cases wait", || async {
        (fleet.api(1).metric("tempmail_subscribers").await >= cases as f64).then_some(())
    })
    .await;
    // A stream is notified of the mail together with the wait; another wait might first find it in the store.
    let token = fleet.token(&tenant, TokenKind::Live).await;
    let mut stream = EventStream::open(fleet.request(1, Method::GET, "/v1/sse/user").live(&token)).await;
    fleet.deliver(0, &address, "first").await;
    let received: Value = serde_json::from_str(&stream.next().await.data).unwrap();
    let id = received["id"].as_str().unwrap().to_owned();
    let delete = |method, path: String| fleet.request(0, method, &path).live(&tenant.live).send();
    let status = match case {
        FirstMail::Stays => 204,
        FirstMail::MessageDeleted => delete(Method::DELETE, format!("/v1/email/{id}")).await.status,
        FirstMail::InboxCleared => delete(Method::DELETE, format!("/v1/inbox/{address}")).await.status,
        FirstMail::MailboxDeleted => {
            let jwt = &mailbox.as_ref().unwrap().jwt;
            fleet.request(0, Method::DELETE, "/api/me").bearer(jwt).send().await.status
        }
        FirstMail::DomainLost | FirstMail::DomainMailboxLost => {
            fleet.end_verification(domain).await;
            204
        }
    };
    assert_eq!(status, 204);
    wait
}

/// A wait for so many mails of everything a tenant owns, at the process that will drain.
async fn wait(fleet: &Fleet, tenant: &Tenant, count: usize) -> JoinHandle<Response> {
    let token = fleet.token(tenant, TokenKind::Live).await;
    let path = format!("/v1/me?count={count}");
    tokio::spawn(fleet.request(1, Method::GET, &path).live(&token).send())
}
