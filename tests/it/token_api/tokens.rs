//! `/v1/tokens`

mod minted;
mod surfaces;

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::rows::ManagedKind;
use tempmail_tests::wait::within_deadline;
use tempmail_tests::{App, Response, rows};
use uuid::Uuid;

use crate::pro_api::{assert_time, id_of};

#[tokio::test(flavor = "multi_thread")]
async fn lists_only_live_tokens_of_the_tenant() {
    let app = App::start().await;
    app.another_tenant("lighthouse").await;
    let answer = app.get("/v1/tokens").await.expect(200);
    let listed = &answer["tokens"][0];
    assert_time(&listed["created_at"]);
    let expected = json!({
        "id": listed["id"],
        "name": "test",
        "kind": "live",
        "hint": app.tenant.live[app.tenant.live.len() - 4..],
        "created_at": listed["created_at"],
        "last_used_at": listed["last_used_at"],
        "expires_at": null,
        "revoked_at": null,
            "surfaces": [],
    });
    assert_eq!(answer, json!({ "tokens": [expected] }));
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_newest_first_in_pages() {
    let app = App::start().await;
    let mut names = vec!["test".to_owned()];
    for n in 1..=3 {
        app.clock.advance(jiff::SignedDuration::from_secs(1));
        let name = n.to_string();
        let request = app.request(Method::POST, "/v1/tokens").live(&app.tenant.live);
        assert_eq!(request.json(&json!({ "name": name })).send().await.status, 201);
        names.insert(0, name);
    }
    let listed = app.get("/v1/tokens?page=1").await.expect(200);
    let listed: Vec<&Value> = listed["tokens"].as_array().unwrap().iter().map(|t| &t["name"]).collect();
    assert_eq!(listed, names.iter().map(|name| name.as_str()).collect::<Vec<_>>());
    assert_eq!(app.get("/v1/tokens?page=2").await.expect(200), json!({ "tokens": [] }));
}

const PATH: &str = "/v1/tokens";

async fn create(app: &App, body: Value) -> Response {
    app.request(Method::POST, PATH).live(&app.tenant.live).json(&body).send().await
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
async fn rejects_invalid_values_and_pro_tokens() {
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
}

async fn revoke(app: &App, id: impl std::fmt::Display) -> Response {
    app.delete(&format!("/v1/tokens/{id}")).await
}

async fn created(app: &App) -> (Uuid, String) {
    let request = app.request(Method::POST, "/v1/tokens").live(&app.tenant.live);
    let created = request.json(&json!({ "name": "mine" })).send().await.expect(201);
    (id_of(&created), created["token"].as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_revoked_token_at_once_and_ends_its_wait() {
    let app = App::start().await;
    let (id, token) = created(&app).await;
    let wait = app.start_long_poll(&token, "/v1/inbox/ship@inbox.localhost").await;
    let answer = revoke(&app, id).await;
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    app.get_as(&token, "/v1/tokens").await.assert_v1_error(401, "invalid_token");
    within_deadline("the wait ends", wait).await.unwrap().assert_v1_error(401, "invalid_token");
    revoke(&app, id).await.assert_v1_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn lets_a_token_revoke_itself() {
    let app = App::start().await;
    let (id, token) = created(&app).await;
    let path = format!("/v1/tokens/{id}");
    assert_eq!(app.request(Method::DELETE, &path).live(&token).send().await.status, 204);
    app.get_as(&token, "/v1/tokens").await.assert_v1_error(401, "invalid_token");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_the_revocation_of_a_token_managed_by_kubernetes() {
    let app = App::start().await;
    let (id, token) = created(&app).await;
    rows::manage_by_kubernetes(&app.pool, ManagedKind::Token, id).await;
    revoke(&app, id).await.assert_v1_error(409, "managed_by_kubernetes");
    assert_eq!(app.get_as(&token, "/v1/tokens").await.status, 200);
}

/// Nor one of another tenant: `matrix`.
#[tokio::test(flavor = "multi_thread")]
async fn revokes_no_pro_token_of_its_tenant() {
    let app = App::start().await;
    let of_pro: Uuid = sqlx::query_scalar("SELECT id FROM api_token WHERE kind = 'pro' AND tenant = $1")
        .bind(app.tenant.id)
        .fetch_one(&app.pool)
        .await
        .unwrap();
    revoke(&app, of_pro).await.assert_v1_error(404, "not_found");
    let pro = app.request(Method::GET, "/pro/api/tokens").bearer(&app.tenant.pro).send().await;
    assert_eq!(pro.status, 200);
}
