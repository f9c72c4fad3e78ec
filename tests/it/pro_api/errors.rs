//! Errors of every route of `/pro/api` and `/v1/tokens`.

use reqwest::Method;
use serde_json::json;
use tempmail_tests::App;
use tempmail_tests::postgres::PostgresProxy;
use tempmail_tests::wait::eventually;

use super::pro;

const ID: &str = "019a0000-0000-7000-8000-000000000000";

/// Every route that requires a Pro token, with its body.
fn routes() -> Vec<(Method, String, serde_json::Value)> {
    let webhook = json!({ "url": "https://hooks.example/", "events": ["email.received"] });
    let account = json!({ "address": "a@inbox.localhost", "password": "pass123" });
    vec![
        (Method::GET, "/pro/api/accounts".into(), json!({})),
        (Method::POST, "/pro/api/accounts".into(), account),
        (Method::DELETE, format!("/pro/api/accounts/{ID}"), json!({})),
        (Method::PUT, format!("/pro/api/accounts/{ID}/reset-password"), json!({ "password": "pass123" })),
        (Method::GET, format!("/pro/api/accounts/{ID}/messages"), json!({})),
        (Method::GET, "/pro/api/tokens".into(), json!({})),
        (Method::POST, "/pro/api/tokens".into(), json!({ "name": "n" })),
        (Method::DELETE, format!("/pro/api/tokens/{ID}"), json!({})),
        (Method::GET, "/pro/api/webhooks".into(), json!({})),
        (Method::POST, "/pro/api/webhooks".into(), webhook),
        (Method::DELETE, format!("/pro/api/webhooks/{ID}"), json!({})),
        (Method::POST, format!("/pro/api/webhooks/{ID}/rotate"), json!({})),
        (Method::GET, format!("/pro/api/webhooks/{ID}/deliveries"), json!({})),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_unavailable_while_postgres_is_down_and_recovers() {
    let proxy = PostgresProxy::start().await;
    let app = App::builder().postgres_through(proxy.port()).start().await;
    proxy.cut();
    for (method, path, body) in routes() {
        let answer = pro(&app, method, &path).json(&body).send().await;
        answer.assert_api_error(503, "unavailable");
        assert!(!answer.header("retry-after").is_empty(), "{path}");
    }
    let token = json!({ "token": app.tenant.pro });
    let session = app.request(Method::POST, "/pro/api/session").json(&token).send().await;
    session.assert_api_error(503, "unavailable");
    app.get("/v1/tokens").await.assert_v1_error(503, "unavailable");
    proxy.restore();
    eventually("it answers again", || async {
        let answer = pro(&app, Method::GET, "/pro/api/tokens").send().await;
        (answer.status == 200).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_unknown_paths_methods_and_encodings() {
    let app = App::start().await;
    for path in ["/pro/api", "/pro/api/", "/pro/api/nothing", "/pro/api/tokens/", "/pro/api/accounts/a/b"] {
        pro(&app, Method::GET, path).send().await.assert_api_error(404, "not_found");
    }
    for (method, path, _) in routes() {
        let answer = pro(&app, Method::PATCH, &path).send().await;
        answer.assert_api_error(405, "method_not_allowed");
        assert!(answer.header("allow").contains(method.as_str()), "{path}: {}", answer.header("allow"));
        let encoded = pro(&app, method, &path).header("content-encoding", "gzip").send().await;
        encoded.assert_api_error(415, "unsupported_media_type");
    }
}
