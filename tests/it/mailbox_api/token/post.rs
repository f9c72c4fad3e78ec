//! `POST /api/token`

use reqwest::Method;
use serde_json::json;
use tempmail_tests::rows;
use tempmail_tests::{App, Response};

async fn sign_in(app: &App, address: &str, password: &str) -> Response {
    let body = json!({ "address": address, "password": password });
    app.request(Method::POST, "/api/token").json(&body).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_a_jwt_for_address_and_password() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    for address in ["name@inbox.localhost", "NAME@Inbox.Localhost"] {
        let body = sign_in(&app, address, &mailbox.password).await.expect(200);
        assert_eq!(
            body,
            json!({ "id": mailbox.id, "address": "name@inbox.localhost", "token": body["token"] })
        );
        let jwt = body["token"].as_str().unwrap();
        assert_eq!(app.request(Method::GET, "/api/messages").bearer(jwt).send().await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_a_wrong_password_like_an_unknown_mailbox() {
    let app = App::start().await;
    app.mailbox(None, "name@inbox.localhost").await;
    let wrong = sign_in(&app, "name@inbox.localhost", "wrong password").await;
    wrong.assert_api_error(401, "invalid_credentials");
    for address in [
        "other@inbox.localhost",
        "name@elsewhere.example",
        "admin@inbox.localhost",
        "name+tag@inbox.localhost",
        "no address",
        "",
    ] {
        let unknown = sign_in(&app, address, "wrong password").await;
        assert_eq!((unknown.status, unknown.text()), (wrong.status, wrong.text()), "{address}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_removed_mailbox() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "gone@inbox.localhost").await;
    assert_eq!(app.request(Method::DELETE, "/api/me").bearer(&mailbox.jwt).send().await.status, 204);
    sign_in(&app, &mailbox.address, &mailbox.password).await.assert_api_error(401, "invalid_credentials");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_mailbox_of_a_suspended_tenant() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    rows::suspend_tenant(&app.pool, app.tenant.id).await;
    app.get_mailbox(&mailbox, "/api/me").await.assert_api_error(403, "account_disabled");
    sign_in(&app, &mailbox.address, &mailbox.password).await.assert_api_error(403, "account_disabled");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_malformed_body_and_names_the_field() {
    let app = App::start().await;
    for (body, field) in [
        ("{", "JSON"),
        ("[]", "object"),
        (r#"{"password":"pass123"}"#, "address"),
        (r#"{"address":"a@inbox.localhost"}"#, "password"),
        (r#"{"address":"a@inbox.localhost","password":1}"#, "password"),
    ] {
        let answer = app.request(Method::POST, "/api/token").body("application/json", body).send().await;
        answer.assert_api_error(400, "invalid_request");
        assert!(answer.json()["message"].as_str().unwrap().contains(field), "{}", answer.text());
    }
}
