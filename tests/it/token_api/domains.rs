//! `/v1/domains`

mod delete;
mod get;
mod post;

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::{Answer, App, Tenant};

/// Tries to add a domain.
async fn create(app: &App, tenant: &Tenant, name: &str) -> Answer {
    let request = app.request(Method::POST, "/v1/domains").live(&tenant.live);
    request.json(&json!({ "domain": name })).send().await
}

/// The tenant's domains.
async fn list(app: &App) -> Vec<Value> {
    app.get("/v1/domains").await.expect(200)["domains"].as_array().unwrap().clone()
}

/// Asserts who a route is for.
async fn takes_live_tokens_only(app: &App, method: Method, path: &str) {
    let ask = || app.request(method.clone(), path);
    ask().send().await.is_v1_error(401, "authentication_required");
    ask().live(&app.tenant.pro).send().await.is_v1_error(401, "invalid_token");
    let suspended = app.another_tenant("drydock").await;
    sqlx::query("UPDATE tenant SET suspended = true WHERE id = $1")
        .bind(suspended.id)
        .execute(&app.pool)
        .await
        .unwrap();
    ask().live(&suspended.live).send().await.is_v1_error(403, "account_disabled");
}
