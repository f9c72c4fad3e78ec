//! `POST /pro/api/webhooks/{id}/rotate`

use reqwest::Method;
use serde_json::json;
use tempmail_tests::rows::{self, ManagedKind};
use tempmail_tests::{App, Response};
use uuid::Uuid;

use crate::pro_api::webhooks::webhook;
use crate::pro_api::{assert_accepts_only_pro_tokens, assert_all_unknown, id_of, pro, unknown_ids};

async fn rotate(app: &App, id: impl std::fmt::Display) -> Response {
    pro(app, Method::POST, &format!("/pro/api/webhooks/{id}/rotate")).send().await
}

async fn stored(app: &App, id: Uuid) -> Vec<u8> {
    let secret = sqlx::query_scalar("SELECT secret FROM webhook WHERE id = $1").bind(id);
    secret.fetch_one(&app.pool).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_only_valid_pro_tokens() {
    assert_accepts_only_pro_tokens(
        Method::POST,
        "/pro/api/webhooks/019a0000-0000-7000-8000-000000000000/rotate",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replaces_the_secret() {
    let app = App::start().await;
    let created = webhook(&app, &app.tenant.pro).await;
    let id = id_of(&created);
    let before = stored(&app, id).await;
    let rotated = rotate(&app, id).await.expect(200);
    let secret = rotated["secret"].as_str().unwrap();
    assert_eq!(rotated, json!({ "id": id, "secret": secret }));
    assert!(secret.starts_with("whsec_") && secret.len() == "whsec_".len() + 44);
    assert_ne!(created["secret"], secret);
    let after = stored(&app, id).await;
    assert_ne!(before, after);
    assert!(!after.windows(6).any(|octets| octets == b"whsec_"), "it is sealed");
    assert_ne!(rotate(&app, id).await.expect(200)["secret"], secret);
}

#[tokio::test(flavor = "multi_thread")]
async fn resets_the_failure_count_and_keeps_the_status() {
    let app = App::start().await;
    let id = id_of(&webhook(&app, &app.tenant.pro).await);
    for status in ["active", "disabled"] {
        sqlx::query("UPDATE webhook SET status = $2, failure_count = 9 WHERE id = $1")
            .bind(id)
            .bind(status)
            .execute(&app.pool)
            .await
            .unwrap();
        assert_eq!(rotate(&app, id).await.status, 200);
        let listed = pro(&app, Method::GET, "/pro/api/webhooks").send().await.expect(200);
        let listed = &listed["webhooks"][0];
        assert_eq!((&listed["status"], &listed["failure_count"]), (&json!(status), &json!(0)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_a_foreign_webhook_like_an_unknown_one() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    let theirs = id_of(&webhook(&app, &other.pro).await);
    let before = stored(&app, theirs).await;
    let mut ids = unknown_ids(&app);
    ids.push(theirs.to_string());
    assert_all_unknown(&ids, async |id| rotate(&app, id).await).await;
    rotate(&app, "%FF").await.assert_api_error(400, "invalid_request");
    assert_eq!(stored(&app, theirs).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_the_rotation_of_a_webhook_managed_by_kubernetes() {
    let app = App::start().await;
    let id = id_of(&webhook(&app, &app.tenant.pro).await);
    rows::manage_by_kubernetes(&app.pool, ManagedKind::Webhook, id).await;
    let before = stored(&app, id).await;
    rotate(&app, id).await.assert_api_error(409, "managed_by_kubernetes");
    assert_eq!(stored(&app, id).await, before);
}
