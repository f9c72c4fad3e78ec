//! `GET /v1/domains`

use reqwest::Method;
use tempmail_tests::App;

use super::{create, list};
use crate::token_api::assert_accepts_only_live_tokens;

#[tokio::test(flavor = "multi_thread")]
async fn accepts_only_live_tokens() {
    assert_accepts_only_live_tokens(Method::GET, "/v1/domains").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_the_same_domains_as_the_pro_api() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    create(&app, &other, "theirs.test").await.expect(201);
    let first = create(&app, &app.tenant, "first.test").await.expect(201);
    app.clock.advance(jiff::SignedDuration::from_secs(1));
    let second = app.create_domain(&app.tenant, "second.test").await.expect(201);
    assert_eq!(list(&app).await, [second.clone(), first.clone()], "newest first");
    assert_eq!(app.domains(&app.tenant).await, [second, first]);
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_pages_from_one() {
    let app = App::start().await;
    create(&app, &app.tenant, "first.test").await.expect(201);
    assert!(app.get("/v1/domains?page=2").await.expect(200)["domains"].as_array().unwrap().is_empty());
    app.get("/v1/domains?page=0").await.assert_v1_error(400, "invalid_request");
}
