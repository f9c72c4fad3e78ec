//! `GET /pro/api/messages`

use jiff::SignedDuration;
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::App;

use super::{Owners, PATH, id, subjects};
use crate::pro_api::{assert_time, pro};

#[tokio::test(flavor = "multi_thread")]
async fn lists_what_the_tenant_owns_and_nothing_else() {
    let owners = Owners::create().await;
    let (own, others) = (owners.list(&owners.app.tenant.pro).await, owners.list(&owners.other.pro).await);
    assert_eq!(subjects(&own), ["quay domain", "quay mailbox"]);
    assert_eq!(subjects(&others), ["lamp domain", "lamp mailbox"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_messages_with_the_documented_fields() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "quay@inbox.localhost").await;
    app.custom_domain(&app.tenant, "quay.example").await;
    app.deliver("any@quay.example", "domain", "x").await;
    app.deliver("quay+tag@inbox.localhost", "mailbox", "Hello").await;
    let answer = pro(&app, Method::GET, PATH).send().await.expect(200);
    let message = &answer["messages"][0];
    assert_time(&message["created_at"]);
    let expected = json!({
        "id": message["id"], "address": "quay+tag@inbox.localhost", "account_id": mailbox.id.to_string(),
        "sender": "ada@client.example", "from": "Ada <ada@client.example>", "subject": "mailbox",
        "preview_text": "Hello", "size": message["size"], "created_at": message["created_at"], "is_read": false,
    });
    assert_eq!(message, &expected);
    assert_eq!(answer["messages"][1]["account_id"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_by_number_and_before_a_message() {
    let app = App::start().await;
    app.mailbox(Some(&app.tenant.pro), "quay@inbox.localhost").await;
    for number in 0..31 {
        app.deliver("quay@inbox.localhost", &format!("mail {number}"), "x").await;
    }
    let list = async |query: &str| {
        let answer = pro(&app, Method::GET, &format!("{PATH}?{query}")).send().await.expect(200);
        answer["messages"].as_array().unwrap().clone()
    };
    let (first, second) = (list("").await, list("page=2").await);
    assert_eq!((first.len(), subjects(&second)), (30, vec!["mail 0"]));
    assert_eq!(list(&format!("before={}", id(&first[29]))).await, second);
    let owners = Owners::create().await;
    let foreign = owners.list(&owners.other.pro).await;
    let path = format!("{PATH}?before={}", id(&foreign[0]));
    pro(&owners.app, Method::GET, &path).send().await.assert_api_error(404, "not_found");
    pro(&app, Method::GET, &format!("{PATH}?before=x")).send().await.assert_api_error(400, "invalid_request");
    app.advance_hours(73);
    let path = format!("{PATH}?before={}", id(&first[0]));
    pro(&app, Method::GET, &path).send().await.assert_api_error(410, "email_expired");
}

#[tokio::test(flavor = "multi_thread")]
async fn leaves_out_what_is_expired_or_not_served() {
    let owners = Owners::create().await;
    let app = &owners.app;
    let domain = sqlx::query_scalar("SELECT id FROM domain WHERE name = 'quay.example'");
    app.end_verification(domain.fetch_one(&app.pool).await.unwrap()).await;
    assert_eq!(subjects(&owners.list(&app.tenant.pro).await), ["quay mailbox"]);
    app.clock.advance(SignedDuration::from_hours(73));
    assert!(owners.list(&app.tenant.pro).await.is_empty());
}
