//! `GET /pro/api/domains`

use jiff_sqlx::ToSqlx as _;
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::clock::Clock as _;
use tempmail_tests::App;

use crate::pro_api::assert_accepts_only_pro_tokens;

#[tokio::test(flavor = "multi_thread")]
async fn accepts_only_valid_pro_tokens() {
    assert_accepts_only_pro_tokens(Method::GET, "/pro/api/domains").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_domains_of_the_tenant_newest_first() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    app.domain(&other, "theirs.test").await;
    assert_eq!(app.domains(&app.tenant).await, Vec::<Value>::new());
    let first = app.create_domain(&app.tenant, "first.test").await.expect(201);
    app.clock.advance(jiff::SignedDuration::from_secs(1));
    let second = app.create_domain(&app.tenant, "second.test").await.expect(201);
    let answer = app.request(Method::GET, "/pro/api/domains").bearer(&app.tenant.pro).send().await;
    assert_eq!(answer.expect(200), json!({ "domains": [second, first] }), "newest first");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_all_up_to_1000_then_in_pages() {
    let app = App::start().await;
    // Names that are no longer checked.
    sqlx::query(
        "INSERT INTO domain (id, name, tenant, serves, verify_status, failure_reason, verify_token, created_at, deadline)
         SELECT gen_random_uuid(), 'd' || n || '.test', $1, false, 'failed', 'verification_timed_out', 'x',
                $2::timestamptz + n * interval '1 s', $2
         FROM generate_series(0, 1000) n",
    )
    .bind(app.tenant.id)
    .bind(app.clock.now().to_sqlx())
    .execute(&app.pool)
    .await
    .unwrap();
    let page = async |query: &str| {
        let path = format!("/pro/api/domains{query}");
        app.request(Method::GET, &path).bearer(&app.tenant.pro).send().await
    };
    let names = |answer: Value| -> Vec<String> {
        let domains = answer["domains"].as_array().unwrap();
        domains.iter().map(|domain| domain["domain"].as_str().unwrap().to_owned()).collect()
    };
    let first = names(page("").await.expect(200));
    assert_eq!((first.len(), first[0].as_str(), first[999].as_str()), (1000, "d1000.test", "d1.test"));
    assert_eq!(names(page("?page=2").await.expect(200)), ["d0.test"]);
    assert!(names(page("?page=3").await.expect(200)).is_empty());
    page("?page=0").await.assert_api_error(400, "invalid_request");
    assert_eq!(app.get("/v1/domains").await.expect(200)["domains"].as_array().unwrap().len(), 1000);
}
