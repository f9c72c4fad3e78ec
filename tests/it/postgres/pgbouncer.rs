//! Roles behind PgBouncer in session mode, with its default settings.

use reqwest::Method;
use serde_json::json;
use tempmail_tests::postgres::PgBouncer;
use tempmail_tests::wait::eventually;
use tempmail_tests::{Feed, Fleet, Receiver};

const ADDRESS: &str = "pooled@inbox.localhost";

#[tokio::test(flavor = "multi_thread")]
async fn every_role_works_behind_pgbouncer() {
    let pooler = PgBouncer::start(None).await;
    let fleet = Fleet::builder().apis(1).ingests(1).receivers().postgres_through(pooler.port()).start().await;
    let receiver = Receiver::start().await;
    let webhook = json!({"url": receiver.url(), "events": ["email.received"]});
    let request = fleet.request(0, Method::POST, "/pro/api/webhooks").bearer(&fleet.tenant.pro);
    request.json(&webhook).send().await.expect(201);
    fleet.mailbox(Some(&fleet.tenant.pro), ADDRESS).await;
    let follower = fleet.follow(0, &fleet.tenant.live, Feed::SseAddress(ADDRESS.to_owned()));
    follower.ready().await;

    fleet.deliver(0, ADDRESS, "over the pooler").await;
    eventually("the stream has the mail", || async {
        follower.receipts().iter().any(|receipt| receipt.subject == "over the pooler").then_some(())
    })
    .await;
    receiver.wait_for_requests(1).await;
    let trail = fleet.tempmail("audit --json").await.json();
    let created = trail.as_array().unwrap().iter().filter(|entry| entry["kind"] == "webhook");
    let actors: Vec<&str> = created.map(|entry| entry["actor"].as_str().unwrap()).collect();
    assert!(matches!(actors[..], [actor] if actor.starts_with("token ")), "{actors:?}");
}
