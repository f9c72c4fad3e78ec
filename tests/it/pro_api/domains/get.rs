//! `GET /pro/api/domains`

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::App;
use tempmail_tests::rows::{self, TenantLimit};

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
async fn lists_in_pages_of_30() {
    let app = App::start().await;
    rows::set_limit(&app.pool, app.tenant.id, TenantLimit::Domains, 40).await;
    for number in 0..31 {
        app.domain(&app.tenant, &format!("d{number}.test")).await;
        app.clock.advance(jiff::SignedDuration::from_millis(1));
    }
    let page = async |page: &str| {
        let path = format!("/pro/api/domains?page={page}");
        app.request(Method::GET, &path).bearer(&app.tenant.pro).send().await
    };
    let names = |answer: Value| -> Vec<String> {
        let domains = answer["domains"].as_array().unwrap();
        domains.iter().map(|domain| domain["domain"].as_str().unwrap().to_owned()).collect()
    };
    let first = names(page("1").await.expect(200));
    assert_eq!((first.len(), first[0].as_str(), first[29].as_str()), (30, "d30.test", "d1.test"));
    assert_eq!(names(page("2").await.expect(200)), ["d0.test"]);
    assert!(names(page("3").await.expect(200)).is_empty());
    page("0").await.assert_api_error(400, "invalid_request");
}
