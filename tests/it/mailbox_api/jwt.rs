//! The mailbox JWT as a credential.

use reqwest::Method;
use serde_json::json;
use tempmail_tests::App;
use tempmail_tests::rows;

#[tokio::test(flavor = "multi_thread")]
async fn rejects_an_altered_or_foreign_jwt() {
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
        answer.assert_api_error(401, "invalid_token");
        assert!(!answer.header("www-authenticate").is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_api_tokens() {
    let app = App::start().await;
    app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    for token in [&app.tenant.pro, &app.tenant.live] {
        let answer = app.request(Method::GET, "/api/messages").bearer(token).send().await;
        answer.assert_api_error(401, "invalid_token");
    }
    let header = app.request(Method::GET, "/api/messages").live(&app.tenant.live).send().await;
    header.assert_api_error(401, "authentication_required");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_jwts_of_an_older_password_epoch() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    rows::advance_password_epoch(&app.pool, mailbox.id).await;
    app.get_mailbox(&mailbox, "/api/me").await.assert_api_error(401, "invalid_token");
    let body = app
        .request(Method::POST, "/api/token")
        .json(&json!({ "address": mailbox.address, "password": mailbox.password }))
        .send()
        .await
        .expect(200);
    let jwt = body["token"].as_str().unwrap();
    assert_eq!(app.request(Method::GET, "/api/me").bearer(jwt).send().await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_requests_without_a_credential() {
    let app = App::start().await;
    let id = "00000000-0000-7000-8000-000000000000";
    for (method, path) in [
        (Method::GET, "/api/messages".to_owned()),
        (Method::GET, format!("/api/messages/{id}")),
        (Method::DELETE, format!("/api/messages/{id}")),
        (Method::PUT, format!("/api/messages/{id}/read")),
        (Method::GET, format!("/api/messages/{id}/raw")),
        (Method::GET, format!("/api/messages/{id}/attachments/0")),
        (Method::GET, "/api/me".to_owned()),
        (Method::DELETE, "/api/me".to_owned()),
    ] {
        let answer = app.request(method, &path).send().await;
        answer.assert_api_error(401, "authentication_required");
        assert!(!answer.header("www-authenticate").is_empty(), "{path}");
    }
}
