//! `GET /api/domains`

use reqwest::Method;
use serde_json::json;
use tempmail_tests::App;
use uuid::Uuid;

#[tokio::test(flavor = "multi_thread")]
async fn lists_system_domains_without_custom_ones() {
    let app = App::start().await;
    let second = app.system_domain("second.localhost", true).await;
    app.custom_domain(&app.tenant, "ships.example").await;
    let answer = app.request(Method::GET, "/api/domains").send().await;
    let body = answer.expect(200);
    let first: Uuid = body["domains"][0]["id"].as_str().unwrap().parse().unwrap();
    assert_eq!(
        body,
        json!({ "domains": [
            { "id": first, "domain": "inbox.localhost", "default": true, "sort_order": 0 },
            { "id": second, "domain": "second.localhost", "default": false, "sort_order": 1 },
        ] }),
        "by sort_order"
    );
    assert!(answer.header("cache-control").contains("max-age=60"), "{}", answer.header("cache-control"));
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_domains_by_sort_order() {
    let app = App::start().await;
    app.system_domain("second.localhost", true).await;
    sqlx::query("UPDATE domain SET sort_order = -1 WHERE name = 'second.localhost'")
        .execute(&app.pool)
        .await
        .unwrap();
    let body = app.request(Method::GET, "/api/domains").send().await.expect(200);
    let names: Vec<&str> =
        body["domains"].as_array().unwrap().iter().filter_map(|domain| domain["domain"].as_str()).collect();
    assert_eq!(names, ["second.localhost", "inbox.localhost"]);
}
