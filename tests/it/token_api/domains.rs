//! `/v1/domains`

mod delete;
mod get;
mod post;

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::{App, Response, Tenant};

/// Tries to add a domain.
async fn create(app: &App, tenant: &Tenant, name: &str) -> Response {
    let request = app.request(Method::POST, "/v1/domains").live(&tenant.live);
    request.json(&json!({ "domain": name })).send().await
}

/// The tenant's domains.
async fn list(app: &App) -> Vec<Value> {
    app.get("/v1/domains").await.expect(200)["domains"].as_array().unwrap().clone()
}
