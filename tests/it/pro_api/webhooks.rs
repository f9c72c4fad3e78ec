//! `/pro/api/webhooks`

mod delete;
mod deliveries {
    pub(super) mod get;
}
mod get;
mod post;
mod rotate {
    mod post;
}

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::App;

/// A new webhook, as its creation returned it.
pub(super) async fn webhook(app: &App, pro: &str) -> Value {
    let body = json!({ "url": "https://hooks.example/in", "events": ["email.received"] });
    app.request(Method::POST, "/pro/api/webhooks").bearer(pro).json(&body).send().await.expect(201)
}
