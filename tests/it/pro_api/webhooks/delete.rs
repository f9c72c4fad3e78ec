//! `DELETE /pro/api/webhooks/{id}`

use reqwest::Method;
use serde_json::json;
use tempmail_tests::rows::{self, ManagedKind};
use tempmail_tests::{App, Response};

use super::webhook;
use crate::pro_api::{assert_accepts_only_pro_tokens, assert_all_unknown, id_of, pro, unknown_ids};

async fn delete(app: &App, id: impl std::fmt::Display) -> Response {
    pro(app, Method::DELETE, &format!("/pro/api/webhooks/{id}")).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_only_valid_pro_tokens() {
    assert_accepts_only_pro_tokens(Method::DELETE, "/pro/api/webhooks/019a0000-0000-7000-8000-000000000000")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn removes_a_webhook_and_its_deliveries() {
    let app = App::start().await;
    let id = id_of(&webhook(&app, &app.tenant.pro).await);
    super::deliveries::get::attempt(&app, id, 200, None, 1).await;
    let answer = delete(&app, id).await;
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    let listed = pro(&app, Method::GET, "/pro/api/webhooks").send().await.expect(200);
    assert_eq!(listed, json!({ "webhooks": [] }));
    delete(&app, id).await.assert_api_error(404, "not_found");
    let path = format!("/pro/api/webhooks/{id}/deliveries");
    pro(&app, Method::GET, &path).send().await.assert_api_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_a_foreign_webhook_like_an_unknown_one() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    let mut ids = unknown_ids(&app);
    ids.push(id_of(&webhook(&app, &other.pro).await).to_string());
    assert_all_unknown(&ids, async |id| delete(&app, id).await).await;
    delete(&app, "%FF").await.assert_api_error(400, "invalid_request");
    assert_eq!(app.count("SELECT count(*) FROM webhook").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_the_deletion_of_a_webhook_managed_by_kubernetes() {
    let app = App::start().await;
    let id = id_of(&webhook(&app, &app.tenant.pro).await);
    rows::manage_by_kubernetes(&app.pool, ManagedKind::Webhook, id).await;
    delete(&app, id).await.assert_api_error(409, "managed_by_kubernetes");
    assert_eq!(app.count("SELECT count(*) FROM webhook").await, 1);
}
