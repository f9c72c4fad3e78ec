//! `DELETE /v1/tokens/{id}`

use reqwest::Method;
use serde_json::json;
use tempmail_tests::wait::within_deadline;
use tempmail_tests::{Answer, App};
use uuid::Uuid;

use crate::pro_api::{id_of, ids_of_nothing, is_alike, manage};
use crate::token_api::tokens::is_for_live_alone;

async fn revoke(app: &App, id: impl std::fmt::Display) -> Answer {
    app.delete(&format!("/v1/tokens/{id}")).await
}

async fn created(app: &App) -> (Uuid, String) {
    let request = app.request(Method::POST, "/v1/tokens").live(&app.tenant.live);
    let created = request.json(&json!({ "name": "mine" })).send().await.expect(201);
    (id_of(&created), created["token"].as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_for_live_tokens_alone() {
    is_for_live_alone(Method::DELETE, "/v1/tokens/019a0000-0000-7000-8000-000000000000").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_token_is_refused_at_once_and_its_wait_ends() {
    let app = App::start().await;
    let (id, token) = created(&app).await;
    let wait = app.start_long_poll(&token, "/v1/inbox/ship@inbox.localhost").await;
    let answer = revoke(&app, id).await;
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    app.get_as(&token, "/v1/tokens").await.is_v1_error(401, "invalid_token");
    within_deadline("the wait ends", wait).await.unwrap().is_v1_error(401, "invalid_token");
    revoke(&app, id).await.is_v1_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_may_revoke_itself() {
    let app = App::start().await;
    let (id, token) = created(&app).await;
    let path = format!("/v1/tokens/{id}");
    assert_eq!(app.request(Method::DELETE, &path).live(&token).send().await.status, 204);
    app.get_as(&token, "/v1/tokens").await.is_v1_error(401, "invalid_token");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pro_token_and_anothers_are_as_one_that_is_not_there() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    let mut ids = ids_of_nothing(&app);
    let of_pro: Vec<Uuid> = sqlx::query_scalar("SELECT id FROM api_token WHERE kind = 'pro' OR tenant = $1")
        .bind(other.id)
        .fetch_all(&app.pool)
        .await
        .unwrap();
    assert_eq!(of_pro.len(), 3);
    ids.extend(of_pro.iter().map(Uuid::to_string));
    let first = revoke(&app, &ids[0]).await;
    first.is_v1_error(404, "not_found");
    for id in ids {
        is_alike(&revoke(&app, id).await, &first);
    }
    revoke(&app, "%FF").await.is_v1_error(400, "invalid_request");
    let pro = app.request(Method::GET, "/pro/api/tokens").bearer(&app.tenant.pro).send().await;
    assert_eq!(pro.status, 200);
    assert_eq!(app.get_as(&other.live, "/v1/tokens").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_kubernetes_manages_stays() {
    let app = App::start().await;
    let (id, token) = created(&app).await;
    manage(&app, "UPDATE api_token SET managed_by = 'kubernetes' WHERE id = $1", id).await;
    revoke(&app, id).await.is_v1_error(409, "managed_by_kubernetes");
    assert_eq!(app.get_as(&token, "/v1/tokens").await.status, 200);
}
