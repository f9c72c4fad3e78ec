//! Documents and sessions over several processes.

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::wait::eventually;
use tempmail_tests::{EventStream, Fleet, RedisServer, send_mail};

use super::{mail, url};

/// A fleet with a mail that has HTML; the JWT of its mailbox and the id of the message.
async fn with_html(fleet: &Fleet) -> (String, String) {
    let mailbox = fleet.mailbox(Some(&fleet.tenant.pro), "boat@inbox.localhost").await;
    let mail = mail("<p>x</p>");
    let reply = send_mail(fleet.smtp(0), "a@client.example", &mailbox.address, &mail).await;
    assert_eq!(reply.code, 250, "{reply:?}");
    let listed = fleet.request(0, Method::GET, "/api/messages").bearer(&mailbox.jwt).send().await.expect(200);
    (mailbox.jwt, listed["messages"][0]["id"].as_str().unwrap().to_owned())
}

async fn create(fleet: &Fleet, jwt: &str, message: &str) -> Value {
    let path = format!("/api/messages/{message}/document");
    fleet.request(0, Method::POST, &path).bearer(jwt).json(&json!({})).send().await.expect(201)
}

#[tokio::test(flavor = "multi_thread")]
async fn opens_once_in_all_processes_that_share_redis() {
    let redis = RedisServer::new();
    let fleet = Fleet::builder().apis(2).ingests(1).workers(0).redis(&redis.url()).start().await;
    for index in 0..2 {
        eventually("the process is connected to Redis", || async {
            (fleet.api(index).metric("tempmail_bus_degraded").await == 0.0).then_some(())
        })
        .await;
    }
    let (jwt, message) = with_html(&fleet).await;
    let made = create(&fleet, &jwt, &message).await;
    assert_eq!(
        fleet.request(1, Method::GET, url(&made)).send().await.status,
        200,
        "another process opens it"
    );
    let again = fleet.request(0, Method::GET, url(&made)).send().await;
    again.assert_api_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn opens_once_in_each_process_without_redis() {
    let fleet = Fleet::builder().apis(1).ingests(1).workers(0).start().await;
    let (jwt, message) = with_html(&fleet).await;
    let made = create(&fleet, &jwt, &message).await;
    assert_eq!(fleet.request(0, Method::GET, url(&made)).send().await.status, 200);
    fleet.request(0, Method::GET, url(&made)).send().await.assert_api_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_in_all_processes() {
    let fleet = Fleet::builder().apis(2).ingests(1).workers(0).start().await;
    let body = json!({ "token": fleet.tenant.pro });
    let session = fleet.request(0, Method::POST, "/pro/api/session").json(&body).send().await.expect(200);
    let session = session["token"].as_str().unwrap();
    let stream = fleet.request(1, Method::GET, "/pro/api/messages/events").bearer(session);
    let stream = EventStream::open(stream).await;
    let ended = fleet.request(0, Method::DELETE, "/pro/api/session").bearer(session).send().await;
    assert_eq!(ended.status, 204);
    let refused = fleet.request(1, Method::GET, "/pro/api/session").bearer(session).send().await;
    refused.assert_api_error(440, "session_expired");
    assert!(stream.ended().await.is_complete);
}
