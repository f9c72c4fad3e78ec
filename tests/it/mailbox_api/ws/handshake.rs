//! The upgrade to a WebSocket, and its `auth` message.

use futures_util::future::join_all;
use jiff::SignedDuration;
use reqwest::Method;
use serde_json::json;
use tempmail_model::token::TokenKind;
use tempmail_tests::raw::RawConnection;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Response, WebSocket};

fn assert_upgrade_required(answer: &Response) {
    answer.assert_api_error(426, "upgrade_required");
    assert_eq!(answer.header("upgrade"), "websocket");
    assert_eq!(answer.header("connection"), "upgrade");
    assert_eq!(answer.header("sec-websocket-version"), "13");
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_426_without_a_valid_upgrade() {
    let app = App::start().await;
    assert_upgrade_required(&app.request(Method::GET, "/api/ws").send().await);
    assert_eq!(app.request(Method::HEAD, "/api/ws").send().await.status, 426);
    app.request(Method::POST, "/api/ws").send().await.assert_api_error(405, "method_not_allowed");
    let right = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    for (changed, value) in [
        ("connection", "close"),
        ("upgrade", "h2c"),
        ("sec-websocket-version", "8"),
        ("sec-websocket-key", "x"),
    ] {
        let fields = right.map(|(name, usual)| {
            (name.to_owned(), if name == changed { value.to_owned() } else { usual.to_owned() })
        });
        let mut connection = RawConnection::connect(app.http(), None).await.unwrap();
        let answer = connection.get("/api/ws", &fields).await.unwrap();
        answer.assert_api_error(426, "upgrade_required");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_only_the_origin_of_base_url() {
    let app = App::builder()
        .config(|config| {
            config.http.base_url = "https://mail.example".into();
            config.http.cors_origins = vec!["https://app.example".into()];
        })
        .start()
        .await;
    let mailbox = app.mailbox(None, "page@inbox.localhost").await;
    for dial in [WebSocket::to(app.http()), WebSocket::to(app.http()).origin("https://mail.example")] {
        let mut socket = dial.connect().await;
        socket.auth(&mailbox.jwt).await;
        assert_eq!(socket.next_json().await["type"], "auth_ok");
    }
    for other in [
        "https://evil.example",
        "http://mail.example",
        "https://mail.example:8443",
        "https://mail.example.evil.example",
        "https://app.example",
        "null",
    ] {
        let refused = WebSocket::to(app.http()).origin(other).refused().await;
        refused.assert_api_error(403, "origin_not_allowed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn treats_all_names_of_localhost_as_one_origin() {
    let app =
        App::builder().config(|config| config.http.base_url = "http://localhost:8080".into()).start().await;
    for name in ["localhost", "127.0.0.1", "[::1]"] {
        WebSocket::to(app.http()).origin(&format!("http://{name}:8080")).connect().await;
    }
    for other in ["http://localhost:8081", "https://localhost:8080", "http://192.0.2.1:8080"] {
        WebSocket::to(app.http()).origin(other).refused().await.assert_api_error(403, "origin_not_allowed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_a_client_to_20_unauthenticated_sockets() {
    let app = App::builder().config(|config| config.http.unlimited_networks.clear()).start().await;
    let mailbox = app.mailbox(None, "many@inbox.localhost").await;
    // At once, since each is closed after 10 s.
    let mut waiting = join_all((0..20).map(|_| WebSocket::to(app.http()).connect())).await;
    let refused = WebSocket::to(app.http()).refused().await;
    refused.assert_api_error(429, "rate_limit_exceeded");
    assert!(!refused.header("retry-after").is_empty());

    // Authentication frees the slot,
    let mut first = waiting.remove(0);
    first.auth(&mailbox.jwt).await;
    assert_eq!(first.next_json().await["type"], "auth_ok");
    waiting.push(WebSocket::to(app.http()).connect().await);
    // a rejection frees it before the client is notified,
    let mut second = waiting.remove(0);
    second.auth("nonsense").await;
    second.assert_refused("invalid_token").await;
    waiting.push(WebSocket::to(app.http()).connect().await);
    WebSocket::to(app.http()).refused().await.assert_api_error(429, "rate_limit_exceeded");
    // and so does a disconnect.
    drop(waiting.remove(0));
    let again = eventually("a slot is free", || async {
        WebSocket::to(app.http()).try_connect().await.unwrap().ok()
    });
    waiting.push(again.await);
}

#[tokio::test(flavor = "multi_thread")]
async fn does_not_limit_clients_of_unlimited_networks() {
    let app = App::start().await;
    let mut waiting = Vec::new();
    for _ in 0..30 {
        waiting.push(WebSocket::to(app.http()).connect().await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_a_socket_as_a_connection_of_its_client() {
    let app = App::builder()
        .config(|config| {
            config.http.unlimited_networks.clear();
            config.http.connections_per_client = 2;
        })
        .start()
        .await;
    let mailbox = {
        let body = serde_json::json!({ "address": "open@inbox.localhost", "password": "correct horse" });
        let request = app.request(Method::POST, "/api/accounts").header("connection", "close").json(&body);
        request.send().await.expect(201)["token"].as_str().unwrap().to_owned()
    };
    let authenticated = async || {
        let mut socket = WebSocket::to(app.http()).try_connect().await.ok()?.ok()?;
        socket.auth(&mailbox).await;
        assert_eq!(socket.next_json().await["type"], "auth_ok");
        Some(socket)
    };
    let first = eventually("the creation's connection is closed", &authenticated).await;
    let _second = eventually("a second connection", &authenticated).await;
    assert!(authenticated().await.is_none(), "a third connection is closed at once");
    drop(first);
    eventually("the slot of the first is free", &authenticated).await;
}

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
    let signed_in = app.sign_in(&created.address, &created.password).await.expect(200);
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
    let session = app.session(&app.tenant.pro).await;
    let jwt = app.mailbox(Some(&app.tenant.pro), "mine@inbox.localhost").await.jwt;
    let (head, signature) = jwt.rsplit_once('.').unwrap();
    for (what, token) in [
        ("a Pro token", app.tenant.pro.as_str()),
        ("a live token", &live),
        ("a Pro session", &session),
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
    app.delete_mailbox(&deleted).await;
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
