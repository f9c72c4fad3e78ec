//! `DELETE /v1/tokens/{id}`

use reqwest::Method;
use serde_json::json;
use tempmail_tests::rows::{self, ManagedKind};
use tempmail_tests::wait::within_deadline;
use tempmail_tests::{App, Response};
use uuid::Uuid;

use crate::pro_api::{assert_all_unknown, id_of, unknown_ids};
use crate::token_api::assert_accepts_only_live_tokens;

async fn revoke(app: &App, id: impl std::fmt::Display) -> Response {
    app.delete(&format!("/v1/tokens/{id}")).await
}

async fn created(app: &App) -> (Uuid, String) {
    let request = app.request(Method::POST, "/v1/tokens").live(&app.tenant.live);
    let created = request.json(&json!({ "name": "mine" })).send().await.expect(201);
    (id_of(&created), created["token"].as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_only_live_tokens() {
    assert_accepts_only_live_tokens(Method::DELETE, "/v1/tokens/019a0000-0000-7000-8000-000000000000").await;
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
async fn answers_pro_and_foreign_tokens_like_an_unknown_one() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    let mut ids = unknown_ids(&app);
    let of_pro: Vec<Uuid> = sqlx::query_scalar("SELECT id FROM api_token WHERE kind = 'pro' OR tenant = $1")
        .bind(other.id)
        .fetch_all(&app.pool)
        .await
        .unwrap();
    assert_eq!(of_pro.len(), 3);
    ids.extend(of_pro.iter().map(Uuid::to_string));
    assert_all_unknown(&ids, async |id| revoke(&app, id).await).await;
    revoke(&app, "%FF").await.assert_v1_error(400, "invalid_request");
    let pro = app.request(Method::GET, "/pro/api/tokens").bearer(&app.tenant.pro).send().await;
    assert_eq!(pro.status, 200);
    assert_eq!(app.get_as(&other.live, "/v1/tokens").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_the_revocation_of_a_token_managed_by_kubernetes() {
    let app = App::start().await;
    let (id, token) = created(&app).await;
    rows::manage_by_kubernetes(&app.pool, ManagedKind::Token, id).await;
    revoke(&app, id).await.assert_v1_error(409, "managed_by_kubernetes");
    assert_eq!(app.get_as(&token, "/v1/tokens").await.status, 200);
}
