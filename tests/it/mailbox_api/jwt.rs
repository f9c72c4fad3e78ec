//! The mailbox JWT as a credential.

use jiff::Timestamp;
use reqwest::Method;
use serde_json::json;
use tempmail_store::Store;
use tempmail_tests::app::Mailbox;
use tempmail_tests::{App, rows};

/// A JWT for a mailbox by its password.
async fn sign_in(app: &App, mailbox: &Mailbox) -> String {
    let credentials = json!({ "address": mailbox.address, "password": mailbox.password });
    let body = app.request(Method::POST, "/api/token").json(&credentials).send().await.expect(200);
    body["token"].as_str().unwrap().to_owned()
}

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
    let jwt = sign_in(&app, &mailbox).await;
    assert_eq!(app.request(Method::GET, "/api/me").bearer(&jwt).send().await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_jwts_of_before_a_restore_after_2038() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    let store = Store::connect(&app.database().url(), 1, "tempmail tests").unwrap();
    // From here on the seconds since 1970 are no 32-bit integer.
    let restored_at: Timestamp = "2038-01-19T03:14:08Z".parse().unwrap();
    let is_accepted = async |jwt: &str| {
        let answer = app.request(Method::GET, "/api/me").bearer(jwt).send().await;
        if answer.status != 200 {
            answer.assert_api_error(401, "invalid_token");
        }
        answer.status == 200
    };
    let mut jwt = mailbox.jwt.clone();
    // Also where it is restored twice in a second, and by a reset that follows.
    for _ in 0..2 {
        assert!(is_accepted(&jwt).await);
        assert_eq!(store.renew_password_epochs(restored_at).await.unwrap(), 1);
        assert!(!is_accepted(&jwt).await);
        jwt = sign_in(&app, &mailbox).await;
    }
    rows::advance_password_epoch(&app.pool, mailbox.id).await;
    assert!(!is_accepted(&jwt).await);
    assert!(is_accepted(&sign_in(&app, &mailbox).await).await);
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
