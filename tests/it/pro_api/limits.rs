//! The limits of a tenant, also under concurrent requests, what it has of them, and the rate of a token.

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::token::TokenKind;
use tempmail_tests::http::split_by_rate_limit;
use tempmail_tests::rows::{self, TenantLimit};
use tempmail_tests::{App, Response};

use super::{assert_one_created, concurrently, pro};

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
async fn limits_the_rate_of_a_token_and_its_sessions() {
    let app = App::builder().config(|config| config.limits.pro_per_second = 2).start().await;
    let other = app.token(&app.tenant, TokenKind::Pro).await;
    let session = &app.session(&app.tenant.pro).await;
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
        let path = if number % 2 == 0 { "/api/accounts" } else { "/pro/api/accounts" };
        pro(&app, Method::POST, path).json(&body)
    })
    .await;
    assert_one_created(&answers, "account_limit_reached");
    let listed = pro(&app, Method::GET, "/pro/api/accounts").send().await.expect(200);
    assert_eq!(listed["accounts"].as_array().unwrap().len(), 2);
    assert_eq!(
        app.create_mailbox(None, "free@inbox.localhost", "pass123").await.status,
        201,
        "it is no tenant's"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn enforces_the_token_limit_under_concurrent_requests() {
    let app = App::start().await;
    // The tenant has two.
    rows::set_limit(&app.pool, app.tenant.id, TenantLimit::Tokens, 3).await;
    let answers = concurrently(|number| {
        let request = match number % 3 {
            0 => app.request(Method::POST, "/v1/tokens").live(&app.tenant.live),
            _ => pro(&app, Method::POST, "/pro/api/tokens"),
        };
        request.json(&json!({ "name": "n", "kind": if number % 3 == 1 { "pro" } else { "live" } }))
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

/// What a tenant may make at once, in these tests.
const CHANGES: u32 = 4;

async fn limited_changes() -> App {
    let app = App::builder().config(|config| config.limits.tenant_changes = CHANGES).start().await;
    rows::lift_limits(&app.pool).await;
    app
}

/// Asserts that a request is above what a tenant may make.
fn assert_too_many_changes(answer: &Response) {
    assert_eq!(answer.error(429), "rate_limit_exceeded");
    assert!(answer.header("retry-after").parse::<u64>().is_ok_and(|seconds| seconds >= 1), "{answer:?}");
    assert_eq!(answer.header("ratelimit-policy"), format!("\"changes\";q={CHANGES};w=20"));
    assert!(answer.header("ratelimit").starts_with("\"changes\";r=0;t="), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_what_a_tenant_makes_over_all_its_tokens_before_anything_is_written() {
    let app = limited_changes().await;
    let own = token_ids(&app).await;
    let (pro, live) =
        (app.token(&app.tenant, TokenKind::Pro).await, app.token(&app.tenant, TokenKind::Live).await);
    let mint = async |live: &str| {
        let body = json!({ "address": "ship@inbox.localhost" });
        app.request(Method::POST, "/v1/tokens").live(live).json(&body).send().await
    };
    let with_pro = async |method: Method, path: &str, body: Value| {
        app.request(method, path).bearer(&pro).json(&body).send().await
    };
    let minted = mint(&live).await.expect(201);
    let webhook = json!({ "url": "https://hooks.example/", "events": ["email.received"] });
    let webhook = with_pro(Method::POST, "/pro/api/webhooks", webhook).await.expect(201);
    // The last ones that are allowed, and some more that come while time passes.
    let refused = loop {
        let answer = mint(&app.tenant.live).await;
        if answer.status != 201 {
            break answer;
        }
    };
    assert_too_many_changes(&refused);
    let rows = "SELECT (SELECT count(*) FROM audit) + (SELECT count(*) FROM minted_token) + (SELECT count(*) FROM api_token)
                + (SELECT count(*) FROM webhook) + (SELECT count(*) FROM domain) + (SELECT count(*) FROM mailbox)";
    let rotate = format!("/pro/api/webhooks/{}/rotate", text(&webhook, "id"));
    for (name, method, path, body) in [
        ("a session", Method::POST, "/pro/api/session", json!({ "token": pro })),
        ("a Pro token", Method::POST, "/pro/api/tokens", json!({ "name": "n" })),
        ("a live token", Method::POST, "/pro/api/tokens", json!({ "name": "n", "kind": "live" })),
        ("a secret", Method::POST, rotate.as_str(), Value::Null),
        ("a domain", Method::POST, "/pro/api/domains", json!({ "domain": "ships.example" })),
        (
            "a mailbox",
            Method::POST,
            "/api/accounts",
            json!({ "address": "made@inbox.localhost", "password": "correct horse" }),
        ),
        ("a minted token", Method::DELETE, &format!("/pro/api/tokens/{}", text(&minted, "id")), Value::Null),
    ] {
        // Time gives one more every 5 s, which a busy machine may take.
        let (before, answer) = loop {
            let before = app.count(rows).await;
            let answer = with_pro(method.clone(), path, body.clone()).await;
            if answer.status == 429 {
                break (before, answer);
            }
        };
        assert_too_many_changes(&answer);
        assert_eq!(app.count(rows).await, before, "{name}");
    }
    let other = app.another_tenant("lighthouse").await;
    assert_eq!(mint(&other.live).await.status, 201, "another tenant has its own");
    // What ends is never refused, and always in the trail.
    for id in own {
        assert_eq!(with_pro(Method::DELETE, &format!("/pro/api/tokens/{id}"), Value::Null).await.status, 204);
        let entries = "SELECT count(*) FROM audit WHERE action = 'revoked' AND subject = $1";
        let entries: i64 = sqlx::query_scalar(entries).bind(&id).fetch_one(&app.pool).await.unwrap();
        assert_eq!(entries, 1);
    }
}

/// The ids of the tenant's tokens.
async fn token_ids(app: &App) -> Vec<String> {
    let listed = pro(app, Method::GET, "/pro/api/tokens").send().await.expect(200);
    listed["tokens"].as_array().unwrap().iter().map(|token| text(token, "id")).collect()
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_sessions_by_token() {
    let app = App::builder().config(|config| config.limits.pro_per_second = 2).start().await;
    let other = app.token(&app.tenant, TokenKind::Pro).await;
    let exchange =
        |token: &str| app.request(Method::POST, "/pro/api/session").json(&json!({ "token": token })).send();
    let answers = futures_util::future::join_all((0..50).map(|_| exchange(&app.tenant.pro))).await;
    let limited: Vec<_> = answers.iter().filter(|answer| answer.status == 429).collect();
    assert!(!limited.is_empty() && answers.iter().any(|answer| answer.status == 200));
    for answer in limited {
        answer.assert_api_error(429, "rate_limit_exceeded");
        assert!(answer.header("ratelimit").starts_with("\"token\";r=0;"), "{answer:?}");
    }
    assert_eq!(exchange(&other).await.status, 200, "another token of the tenant has its own");
}
