//! `GET /pro/api/usage`

use reqwest::Method;
use serde_json::json;
use tempmail_tests::App;

use super::pro;

#[tokio::test(flavor = "multi_thread")]
async fn returns_what_the_tenant_has_against_its_limits() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    for (tenant, name) in [(&app.tenant, "quay"), (&app.tenant, "pier"), (&other, "lamp")] {
        app.mailbox(Some(&tenant.pro), &format!("{name}@inbox.localhost")).await;
    }
    app.custom_domain(&app.tenant, "quay.example").await;
    let usage = pro(&app, Method::GET, "/pro/api/usage").send().await.expect(200);
    let expected = json!({
        "mailboxes": {"used": 2, "limit": 100}, "domains": {"used": 1, "limit": 10},
        "webhooks": {"used": 0, "limit": 1}, "tokens": {"used": 2, "limit": 20},
        "bytes": {"used": 0, "limit": null}, "mailbox_bytes": 52_428_800, "retention_hours": 72,
    });
    assert_eq!(usage, expected);
    app.deliver("quay@inbox.localhost", "x", "x").await;
    let usage = pro(&app, Method::GET, "/pro/api/usage").send().await.expect(200);
    assert!(usage["bytes"]["used"].as_i64().unwrap() > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_only_pro_tokens() {
    super::assert_accepts_only_pro_tokens(Method::GET, "/pro/api/usage").await;
}
