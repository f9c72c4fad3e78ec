//! `GET /pro/api/webhooks`

use jiff::SignedDuration;
use jiff_sqlx::ToSqlx as _;
use reqwest::Method;
use serde_json::json;
use tempmail_model::clock::Clock as _;
use tempmail_tests::App;
use tempmail_tests::rows::{self, TenantLimit};

use super::webhook;
use crate::pro_api::{assert_accepts_only_pro_tokens, assert_time, id_of, pro};

const PATH: &str = "/pro/api/webhooks";

#[tokio::test(flavor = "multi_thread")]
async fn accepts_only_valid_pro_tokens() {
    assert_accepts_only_pro_tokens(Method::GET, PATH).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_webhooks_with_their_status_and_without_secrets() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    webhook(&app, &other.pro).await;
    assert_eq!(pro(&app, Method::GET, PATH).send().await.expect(200), json!({ "webhooks": [] }));
    let created = webhook(&app, &app.tenant.pro).await;
    let mut expected = json!({
        "id": created["id"],
        "url": "https://hooks.example/in",
        "events": ["email.received"],
        "status": "active",
        "failure_count": 0,
        "last_triggered_at": null,
        "created_at": created["created_at"],
    });
    let listed = pro(&app, Method::GET, PATH).send().await.expect(200);
    assert_eq!(listed, json!({ "webhooks": [expected] }));

    let now = app.clock.now();
    sqlx::query(
        "UPDATE webhook SET status = 'disabled', failure_count = 10, last_triggered_at = $2 WHERE id = $1",
    )
    .bind(id_of(&created))
    .bind(now.to_sqlx())
    .execute(&app.pool)
    .await
    .unwrap();
    expected["status"] = json!("disabled");
    expected["failure_count"] = json!(10);
    expected["last_triggered_at"] = json!(format!("{now:.3}"));
    assert_time(&expected["last_triggered_at"]);
    let listed = pro(&app, Method::GET, PATH).send().await.expect(200);
    assert_eq!(listed, json!({ "webhooks": [expected] }));
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_all_newest_first() {
    let app = App::start().await;
    // The most that an administrator may allow is one page.
    rows::set_limit(&app.pool, app.tenant.id, TenantLimit::Webhooks, 32).await;
    let mut ids = Vec::new();
    for _ in 0..32 {
        ids.insert(0, webhook(&app, &app.tenant.pro).await["id"].clone());
        app.clock.advance(SignedDuration::from_secs(1));
    }
    let listed = pro(&app, Method::GET, PATH).send().await.expect(200);
    let listed: Vec<_> = listed["webhooks"].as_array().unwrap().iter().map(|w| w["id"].clone()).collect();
    assert_eq!(listed, ids);
    let second = pro(&app, Method::GET, &format!("{PATH}?page=2")).send().await.expect(200);
    assert_eq!(second, json!({ "webhooks": [] }));
    for query in ["?page=0", "?page=x", "?page="] {
        let answer = pro(&app, Method::GET, &format!("{PATH}{query}")).send().await;
        answer.assert_api_error(400, "invalid_request");
    }
}
