//! `POST /api/token`, and the mailbox JWT that it returns as a credential.

use jiff::Timestamp;
use reqwest::Method;
use serde_json::json;
use tempmail_store::Store;
use tempmail_tests::postgres::PostgresProxy;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Fleet, rows};

#[tokio::test(flavor = "multi_thread")]
async fn returns_a_jwt_for_address_and_password() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    for address in ["name@inbox.localhost", "NAME@Inbox.Localhost"] {
        let body = app.sign_in(address, &mailbox.password).await.expect(200);
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
    let wrong = app.sign_in("name@inbox.localhost", "wrong password").await;
    wrong.assert_api_error(401, "invalid_credentials");
    for address in [
        "other@inbox.localhost",
        "name@elsewhere.example",
        "admin@inbox.localhost",
        "name+tag@inbox.localhost",
        "no address",
        "",
    ] {
        let unknown = app.sign_in(address, "wrong password").await;
        assert_eq!((unknown.status, unknown.text()), (wrong.status, wrong.text()), "{address}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_removed_mailbox() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "gone@inbox.localhost").await;
    app.delete_mailbox(&mailbox).await;
    app.sign_in(&mailbox.address, &mailbox.password).await.assert_api_error(401, "invalid_credentials");
}

#[tokio::test(flavor = "multi_thread")]
async fn does_not_count_sign_ins_while_postgres_is_away() {
    let proxy = PostgresProxy::start().await;
    let fleet = Fleet::builder().apis(1).ingests(0).workers(0).postgres_through(proxy.port());
    let fleet = fleet.config(|config| {
        config.http.unlimited_networks.clear();
        config.limits.sign_in_failures = 2;
        config.limits.sign_in_failures_per_client = 3;
    });
    let fleet = fleet.start().await;
    let mailbox = fleet.mailbox(None, "name@inbox.localhost").await;
    let sign_in = async |password: &str| {
        let body = json!({ "address": mailbox.address, "password": password });
        fleet.request(0, Method::POST, "/api/token").json(&body).send().await
    };
    proxy.cut();
    for _ in 0..5 {
        sign_in(&mailbox.password).await.assert_api_error(503, "unavailable");
    }
    proxy.restore();
    let signed_in = eventually("Postgres is back", || async {
        Some(sign_in(&mailbox.password).await).filter(|answer| answer.status != 503)
    });
    assert_eq!(signed_in.await.status, 200);
    // Wrong passwords are counted as ever.
    for _ in 0..2 {
        sign_in("wrong password").await.assert_api_error(401, "invalid_credentials");
    }
    sign_in(&mailbox.password).await.assert_api_error(429, "rate_limit_exceeded");
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
    let new_jwt = async || {
        let signed_in = app.sign_in(&mailbox.address, &mailbox.password).await.expect(200);
        signed_in["token"].as_str().unwrap().to_owned()
    };
    let mut jwt = mailbox.jwt.clone();
    // Also where it is restored twice in a second, and by a reset that follows.
    for _ in 0..2 {
        assert!(is_accepted(&jwt).await);
        assert_eq!(store.renew_password_epochs(restored_at).await.unwrap(), 1);
        assert!(!is_accepted(&jwt).await);
        jwt = new_jwt().await;
    }
    rows::advance_password_epoch(&app.pool, mailbox.id).await;
    assert!(!is_accepted(&jwt).await);
    assert!(is_accepted(&new_jwt().await).await);
}
