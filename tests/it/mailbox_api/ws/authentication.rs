//! The `auth` message.

use jiff::SignedDuration;
use reqwest::Method;
use serde_json::json;
use tempmail_model::token::TokenKind;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, WebSocket};

/// Asserts that a token is rejected with this code.
async fn assert_rejected(app: &App, what: &str, token: &str, code: &str) {
    let mut socket = WebSocket::to(app.http()).connect().await;
    socket.auth(token).await;
    assert_eq!(socket.next_json().await, json!({ "error": code }), "{what}");
    assert_eq!(socket.closed().await, 1008, "{what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_a_mailbox_jwt_with_auth_ok() {
    let app = App::start().await;
    let created = app.mailbox(None, "first@inbox.localhost").await;
    let body = json!({ "address": created.address, "password": created.password });
    let signed_in = app.request(Method::POST, "/api/token").json(&body).send().await.expect(200);
    for jwt in [created.jwt.as_str(), signed_in["token"].as_str().unwrap()] {
        let mut socket = WebSocket::to(app.http()).connect().await;
        socket.auth(jwt).await;
        assert_eq!(socket.next_json().await, json!({ "type": "auth_ok" }));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ignores_unknown_fields_of_the_auth_message() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "fields@inbox.localhost").await;
    let mut socket = WebSocket::to(app.http()).connect().await;
    socket.send_text(&json!({ "token": mailbox.jwt, "x": [1], "type": "auth" }).to_string()).await;
    assert_eq!(socket.next_json().await, json!({ "type": "auth_ok" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_malformed_auth_message() {
    let app = App::start().await;
    let jwt = app.mailbox(None, "other@inbox.localhost").await.jwt;
    let long = json!({ "type": "auth", "token": jwt, "x": "x".repeat(4096) }).to_string();
    for text in [
        "",
        "auth",
        &jwt,
        "null",
        "[]",
        "{}",
        r#"{"type":"auth"}"#,
        r#"{"type":"auth","token":null}"#,
        r#"{"type":"auth","token":1}"#,
        &format!(r#"{{"type":"login","token":"{jwt}"}}"#),
        &format!(r#"{{"token":"{jwt}"}}"#),
        &format!(r#"{{"type":"auth","token":"{jwt}""#),
        &long,
    ] {
        let mut socket = WebSocket::to(app.http()).connect().await;
        socket.send_text(text).await;
        socket.assert_refused("invalid_auth_message").await;
    }
    let mut socket = WebSocket::to(app.http()).connect().await;
    socket.send_binary(json!({ "type": "auth", "token": jwt }).to_string()).await;
    socket.assert_refused("invalid_auth_message").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_any_token_but_a_mailbox_jwt() {
    let app = App::start().await;
    let live = app.token(&app.tenant, TokenKind::Live).await;
    let exchange = json!({ "token": app.tenant.pro });
    let session = app.request(Method::POST, "/pro/api/session").json(&exchange).send().await.expect(200);
    let jwt = app.mailbox(Some(&app.tenant.pro), "mine@inbox.localhost").await.jwt;
    let (head, signature) = jwt.rsplit_once('.').unwrap();
    for (what, token) in [
        ("a Pro token", app.tenant.pro.as_str()),
        ("a live token", &live),
        ("a Pro session", session["token"].as_str().unwrap()),
        ("nothing", ""),
        ("junk", "a.b.c"),
        ("no signature", &format!("{head}.")),
        ("another signature", &format!("{head}.{}", signature.chars().rev().collect::<String>())),
        ("as in a header", &format!("Bearer {jwt}")),
    ] {
        assert_rejected(&app, what, token, "invalid_token").await;
    }
    let elsewhere = App::start().await;
    let foreign = elsewhere.mailbox(None, "mine@inbox.localhost").await.jwt;
    assert_rejected(&app, "a JWT of another installation", &foreign, "invalid_token").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_an_expired_or_revoked_jwt() {
    let app = App::start().await;
    let pro = Some(app.tenant.pro.as_str());
    let expired = app.mailbox(pro, "expired@inbox.localhost").await;
    app.advance_hours(7 * 24);
    assert_rejected(&app, "past its time", &expired.jwt, "invalid_token").await;

    let reset = app.mailbox(pro, "reset@inbox.localhost").await;
    let path = format!("/pro/api/accounts/{}/reset-password", reset.id);
    let request = app.request(Method::PUT, &path).bearer(&app.tenant.pro);
    request.json(&json!({ "password": "another horse" })).send().await.expect(200);
    assert_rejected(&app, "from before a reset", &reset.jwt, "invalid_token").await;

    let deleted = app.mailbox(pro, "deleted@inbox.localhost").await;
    app.request(Method::DELETE, "/api/me").bearer(&deleted.jwt).send().await.expect(204);
    assert_rejected(&app, "of a deleted mailbox", &deleted.jwt, "invalid_token").await;

    let domain = app.custom_domain(&app.tenant, "ships.example").await;
    let lost = app.mailbox(pro, "lost@ships.example").await;
    app.end_verification(domain).await;
    assert_rejected(&app, "under a domain that no longer serves", &lost.jwt, "invalid_token").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_mailbox_of_a_suspended_tenant() {
    let app = App::start().await;
    let acme = app.another_tenant("acme").await;
    let mailbox = app.mailbox(Some(&acme.pro), "frozen@inbox.localhost").await;
    app.tempmail("tenant suspend acme").await.success();
    assert_rejected(&app, "suspended", &mailbox.jwt, "account_disabled").await;
    app.tempmail("tenant resume acme").await.success();
    WebSocket::authenticated(app.http(), &mailbox.jwt).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ignores_credentials_of_the_upgrade_request() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "header@inbox.localhost").await;
    let bearer = format!("Bearer {}", mailbox.jwt);
    let mut socket = WebSocket::to(app.http()).header("authorization", &bearer).connect().await;
    socket.auth("nonsense").await;
    socket.assert_refused("invalid_token").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn records_a_connection_as_use_of_the_mailbox() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "watched@inbox.localhost").await;
    app.clock.advance(SignedDuration::from_hours(5));
    WebSocket::authenticated(app.http(), &mailbox.jwt).await;
    eventually("the use is recorded", || async {
        let seen = app.count("SELECT count(*) FROM mailbox WHERE seen_at > created_at + interval '4 hours'");
        (seen.await == 1).then_some(())
    })
    .await;
}
