//! `POST /pro/api/accounts`

use reqwest::Method;
use serde_json::json;
use tempmail_tests::rows::{self, TenantLimit};
use tempmail_tests::{App, Response};

use crate::pro_api::{
    assert_accepts_only_pro_tokens, assert_one_created, assert_rejects_bad_bodies, concurrently, pro,
};

const PATH: &str = "/pro/api/accounts";

async fn create(app: &App, address: &str, password: &str) -> Response {
    let body = json!({ "address": address, "password": password });
    pro(app, Method::POST, PATH).json(&body).send().await
}

/// The addresses of the tenant's mailboxes, in alphabetical order.
async fn addresses(app: &App) -> Vec<String> {
    let listed = pro(app, Method::GET, PATH).send().await.expect(200);
    let accounts = listed["accounts"].as_array().unwrap();
    let mut addresses: Vec<String> =
        accounts.iter().map(|account| account["address"].as_str().unwrap().to_owned()).collect();
    addresses.sort();
    addresses
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_only_valid_pro_tokens() {
    assert_accepts_only_pro_tokens(Method::POST, PATH).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn creates_a_mailbox_of_the_tenant_and_returns_no_credential() {
    let app = App::start().await;
    app.custom_domain(&app.tenant, "ships.example").await;
    for address in ["Pro.Name@inbox.localhost", "box@ships.example"] {
        let created = create(&app, address, "pass123").await.expect(201);
        assert_eq!(created, json!({ "id": created["id"], "address": address.to_lowercase() }));
        let sign_in = json!({ "address": address, "password": "pass123" });
        let signed_in = app.request(Method::POST, "/api/token").json(&sign_in).send().await.expect(200);
        assert_eq!(signed_in["id"], created["id"]);
        let jwt = signed_in["token"].as_str().unwrap();
        let me = app.request(Method::GET, "/api/me").bearer(jwt).send().await.expect(200);
        assert_eq!(me["role"], "pro");
    }
    assert_eq!(addresses(&app).await, ["box@ships.example", "pro.name@inbox.localhost"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn creates_a_mailbox_for_a_session() {
    let app = App::start().await;
    let token = json!({ "token": app.tenant.pro });
    let session = app.request(Method::POST, "/pro/api/session").json(&token).send().await.expect(200);
    let session = session["token"].as_str().unwrap();
    let body = json!({ "address": "name@inbox.localhost", "password": "pass123" });
    let created = app.request(Method::POST, PATH).bearer(session).json(&body).send().await;
    assert_eq!(created.status, 201);
    assert_eq!(addresses(&app).await, ["name@inbox.localhost"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_what_the_creation_with_a_token_rejects() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    app.custom_domain(&other, "theirs.example").await;
    app.mailbox(None, "taken@inbox.localhost").await;
    for address in ["a", "a b@inbox.localhost", "admin@inbox.localhost", "a@theirs.example", "a@no.example"] {
        create(&app, address, "pass123").await.assert_api_error(400, "invalid_address");
    }
    create(&app, "a@inbox.localhost", "12345").await.assert_api_error(400, "password_too_short");
    create(&app, "a@inbox.localhost", &"x".repeat(129)).await.assert_api_error(400, "password_too_long");
    create(&app, "taken@inbox.localhost", "pass123").await.assert_api_error(409, "address_taken");
    assert_rejects_bad_bodies(&app, Method::POST, PATH).await;
    assert!(addresses(&app).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn enforces_the_mailbox_limit_under_concurrent_requests() {
    let app = App::start().await;
    rows::set_limit(&app.pool, app.tenant.id, TenantLimit::Mailboxes, 2).await;
    app.mailbox(Some(&app.tenant.pro), "first@inbox.localhost").await;
    let answers = concurrently(|number| {
        let body = json!({ "address": format!("m{number}@inbox.localhost"), "password": "pass123" });
        pro(&app, Method::POST, PATH).json(&body)
    })
    .await;
    assert_one_created(&answers, "account_limit_reached");
    assert_eq!(addresses(&app).await.len(), 2);
}
