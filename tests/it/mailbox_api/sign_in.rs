//! `POST /api/token`

use reqwest::Method;
use serde_json::json;
use tempmail_tests::{Answer, App};

async fn sign_in(app: &App, address: &str, password: &str) -> Answer {
    let body = json!({ "address": address, "password": password });
    app.request(Method::POST, "/api/token").json(&body).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn address_and_password_give_a_jwt() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    for address in ["name@inbox.localhost", "NAME@Inbox.Localhost"] {
        let body = sign_in(&app, address, &mailbox.password).await.expect(200);
        assert_eq!(body["id"], mailbox.id.to_string());
        assert_eq!(body["address"], "name@inbox.localhost");
        assert_eq!(body.as_object().unwrap().len(), 3);
        let jwt = body["token"].as_str().unwrap();
        assert_eq!(app.request(Method::GET, "/api/messages").bearer(jwt).send().await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_and_an_unknown_mailbox_are_one_answer() {
    let app = App::start().await;
    app.mailbox(None, "name@inbox.localhost").await;
    let wrong = sign_in(&app, "name@inbox.localhost", "wrong password").await;
    wrong.is_api_error(401, "invalid_credentials");
    for address in ["other@inbox.localhost", "name@elsewhere.example", "admin@inbox.localhost"] {
        let unknown = sign_in(&app, address, "wrong password").await;
        assert_eq!((unknown.status, unknown.text()), (wrong.status, wrong.text()), "{address}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_mailbox_can_not_sign_in() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "gone@inbox.localhost").await;
    assert_eq!(app.request(Method::DELETE, "/api/me").bearer(&mailbox.jwt).send().await.status, 204);
    sign_in(&app, &mailbox.address, &mailbox.password).await.is_api_error(401, "invalid_credentials");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_jwt_lives_7_days() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    app.advance_hours(24 * 7 - 1);
    assert_eq!(app.get_mailbox(&mailbox, "/api/me").await.status, 200);
    app.advance_hours(2);
    app.get_mailbox(&mailbox, "/api/me").await.is_api_error(401, "invalid_token");
    assert_eq!(sign_in(&app, &mailbox.address, &mailbox.password).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_jwt_that_was_altered_or_made_elsewhere_is_invalid_token() {
    let app = App::start().await;
    let elsewhere = App::start().await;
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    let foreign = elsewhere.mailbox(None, "name@inbox.localhost").await;
    let parts: Vec<&str> = mailbox.jwt.split('.').collect();
    let foreign_parts: Vec<&str> = foreign.jwt.split('.').collect();
    // {"alg":"none","typ":"JWT"}
    let none = format!("eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.{}.", parts[1]);
    for jwt in [
        foreign.jwt.as_str(),
        &none,
        &format!("{}.{}.{}", parts[0], foreign_parts[1], parts[2]),
        &format!("{}.{}.", parts[0], parts[1]),
        "a.b.c",
        "x",
    ] {
        let answer = app.request(Method::GET, "/api/messages").bearer(jwt).send().await;
        answer.is_api_error(401, "invalid_token");
        assert!(!answer.header("www-authenticate").is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn api_tokens_are_no_credential_for_a_mailbox() {
    let app = App::start().await;
    app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    for token in [&app.tenant.pro, &app.tenant.live] {
        let answer = app.request(Method::GET, "/api/messages").bearer(token).send().await;
        answer.is_api_error(401, "invalid_token");
    }
    let header = app.request(Method::GET, "/api/messages").live(&app.tenant.live).send().await;
    header.is_api_error(401, "authentication_required");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_password_epoch_ends_every_older_jwt() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    sqlx::query("UPDATE mailbox SET password_epoch = password_epoch + 1").execute(&app.pool).await.unwrap();
    app.get_mailbox(&mailbox, "/api/me").await.is_api_error(401, "invalid_token");
    let body = sign_in(&app, &mailbox.address, &mailbox.password).await.expect(200);
    let jwt = body["token"].as_str().unwrap();
    assert_eq!(app.request(Method::GET, "/api/me").bearer(jwt).send().await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_of_a_suspended_tenant_is_account_disabled() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    sqlx::query("UPDATE tenant SET suspended = true WHERE id = $1")
        .bind(app.tenant.id)
        .execute(&app.pool)
        .await
        .unwrap();
    app.get_mailbox(&mailbox, "/api/me").await.is_api_error(403, "account_disabled");
    sign_in(&app, &mailbox.address, &mailbox.password).await.is_api_error(403, "account_disabled");
}
