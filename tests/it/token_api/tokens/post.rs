//! `POST /v1/tokens`

use jiff::SignedDuration;
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::rows::{self, TenantLimit};
use tempmail_tests::{App, Response};

use crate::pro_api::{assert_one_created, assert_time, concurrently, id_of};
use crate::token_api::assert_accepts_only_live_tokens;

const PATH: &str = "/v1/tokens";

async fn create(app: &App, body: Value) -> Response {
    app.request(Method::POST, PATH).live(&app.tenant.live).json(&body).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_only_live_tokens() {
    assert_accepts_only_live_tokens(Method::POST, PATH).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn creates_a_live_token_and_returns_it_once() {
    let app = App::start().await;
    for body in [json!({ "name": "mine" }), json!({ "name": "mine", "kind": "live" })] {
        let created = create(&app, body).await.expect(201);
        let token = created["token"].as_str().unwrap();
        assert!(token.starts_with("tm_live_") && token.len() == 72);
        assert_time(&created["created_at"]);
        let expected = json!({
            "id": id_of(&created),
            "name": "mine",
            "kind": "live",
            "hint": token[token.len() - 4..],
            "created_at": created["created_at"],
            "last_used_at": null,
            "expires_at": null,
            "revoked_at": null,
            "surfaces": [],
            "token": token,
            "address": null,
            "since": null,
        });
        assert_eq!(created, expected);
        let listed = app.get_as(token, PATH).await;
        assert_eq!(listed.status, 200);
        assert!(!listed.text().contains(&token["tm_live_".len()..]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn expires_a_token_after_its_days() {
    let app = App::start().await;
    let created = create(&app, json!({ "name": "two days", "expires_in_days": 2 })).await.expect(201);
    let token = created["token"].as_str().unwrap();
    app.clock.advance(SignedDuration::from_secs(48 * 3600 - 300));
    assert_eq!(app.get_as(token, PATH).await.status, 200);
    app.clock.advance(SignedDuration::from_secs(600));
    app.get_as(token, PATH).await.assert_v1_error(440, "session_expired");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_malformed_body_and_pro_tokens() {
    let app = App::start().await;
    for body in [
        json!({ "name": "n", "kind": "pro" }),
        json!({ "name": "n", "kind": "x" }),
        json!({}),
        json!({ "name": "" }),
        json!({ "name": "x".repeat(101) }),
        json!({ "name": "a\tb" }),
        json!({ "name": "n", "expires_in_days": 0 }),
        json!({ "name": "n", "expires_in_days": 3651 }),
        json!([]),
        json!({ "name": "n", "expires_in_seconds": 60 }),
        json!({ "address": 7 }),
        json!({ "address": "nobody" }),
        json!({ "address": "a@inbox.localhost", "name": 7 }),
        json!({ "address": "a@inbox.localhost", "name": "" }),
        json!({ "address": "a@inbox.localhost", "kind": "pro" }),
        json!({ "address": "a@inbox.localhost", "expires_in_days": 1 }),
        json!({ "address": "a@inbox.localhost", "expires_in_seconds": 0 }),
        json!({ "address": "a@inbox.localhost", "expires_in_seconds": 3601 }),
        json!({ "address": "a@inbox.localhost", "expires_in_seconds": "60" }),
    ] {
        let answer = create(&app, body.clone()).await;
        assert_eq!(answer.status, 400, "{body}: {}", answer.text());
        answer.assert_v1_error(400, "invalid_request");
    }
    let send = |media_type: &str, body: String| {
        app.request(Method::POST, PATH).live(&app.tenant.live).body(media_type, body).send()
    };
    send("application/json", "{".to_owned()).await.assert_v1_error(400, "invalid_request");
    send("text/plain", "{}".to_owned()).await.assert_v1_error(415, "unsupported_media_type");
    let large = format!("{{\"name\":\"{}\"}}", "x".repeat(65 * 1024));
    send("application/json", large).await.assert_v1_error(413, "payload_too_large");
}

#[tokio::test(flavor = "multi_thread")]
async fn enforces_the_token_limit_under_concurrent_requests() {
    let app = App::start().await;
    rows::set_limit(&app.pool, app.tenant.id, TenantLimit::Tokens, 3).await;
    let answers = concurrently(|_| {
        app.request(Method::POST, PATH).live(&app.tenant.live).json(&json!({ "name": "n" }))
    })
    .await;
    assert_one_created(&answers, "token_limit_reached");
}
