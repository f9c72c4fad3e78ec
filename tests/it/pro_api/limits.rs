//! The rate limit, and the limits of a tenant under concurrent requests.

use reqwest::Method;
use serde_json::json;
use tempmail_tests::App;
use tempmail_tests::http::split_by_rate_limit;
use tempmail_tests::rows::{self, TenantLimit};

use super::{assert_one_created, concurrently, pro};

#[tokio::test(flavor = "multi_thread")]
async fn limits_the_rate_of_a_token_and_its_sessions() {
    let app = App::builder().config(|config| config.limits.pro_per_second = 2).start().await;
    let other = app.token(&app.tenant, tempmail_model::token::TokenKind::Pro).await;
    let token = json!({ "token": app.tenant.pro });
    let session = app.request(Method::POST, "/pro/api/session").json(&token).send().await.expect(200);
    let session = session["token"].as_str().unwrap();
    let requests = (0..100).map(|number| {
        let credential = if number % 2 == 0 { app.tenant.pro.as_str() } else { session };
        app.request(Method::GET, "/pro/api/webhooks").bearer(credential).send()
    });
    let answers = futures_util::future::join_all(requests).await;
    let (served, limited) = split_by_rate_limit(&answers);
    for response in served.into_iter().chain(limited) {
        assert_eq!(response.header("ratelimit-policy"), "\"token\";q=2;w=1");
        assert!(response.header("ratelimit").starts_with("\"token\";r="), "{response:?}");
    }
    let others = app.request(Method::GET, "/pro/api/webhooks").bearer(&other).send().await;
    assert_eq!(others.status, 200, "another token of the tenant has a limit of its own");
}

#[tokio::test(flavor = "multi_thread")]
async fn enforces_the_mailbox_limit_under_concurrent_requests() {
    let app = App::start().await;
    rows::set_limit(&app.pool, app.tenant.id, TenantLimit::Mailboxes, 2).await;
    app.mailbox(Some(&app.tenant.pro), "first@inbox.localhost").await;
    let answers = concurrently(|number| {
        let body = json!({ "address": format!("m{number}@inbox.localhost"), "password": "pass123" });
        pro(&app, Method::POST, "/api/accounts").json(&body)
    })
    .await;
    assert_one_created(&answers, "account_limit_reached");
    let listed = pro(&app, Method::GET, "/pro/api/accounts").send().await.expect(200);
    assert_eq!(listed["accounts"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn enforces_the_token_limit_under_concurrent_requests() {
    let app = App::start().await;
    // The tenant has two.
    rows::set_limit(&app.pool, app.tenant.id, TenantLimit::Tokens, 3).await;
    let answers = concurrently(|number| {
        let kind = if number % 2 == 0 { "pro" } else { "live" };
        pro(&app, Method::POST, "/pro/api/tokens").json(&json!({ "name": "n", "kind": kind }))
    })
    .await;
    assert_one_created(&answers, "token_limit_reached");
    let listed = pro(&app, Method::GET, "/pro/api/tokens").send().await.expect(200);
    assert_eq!(listed["tokens"].as_array().unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn enforces_the_webhook_limit_under_concurrent_requests() {
    let app = App::start().await;
    let answers = concurrently(|number| {
        let url = format!("https://hooks.example/{number}");
        let body = json!({ "url": url, "events": ["email.received"] });
        pro(&app, Method::POST, "/pro/api/webhooks").json(&body)
    })
    .await;
    assert_one_created(&answers, "webhook_limit_reached");
    let listed = pro(&app, Method::GET, "/pro/api/webhooks").send().await.expect(200);
    assert_eq!(listed["webhooks"].as_array().unwrap().len(), 1);
}
