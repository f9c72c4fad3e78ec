//! Default limits, as the interface states them.

use reqwest::Method;
use tempmail_runtime::config::Limits;
use tempmail_tests::{App, Response};

/// Tempmail with default limits for every client.
async fn unconfigured() -> App {
    App::builder()
        .config(|config| {
            config.limits = Limits::default();
            config.http.unlimited_networks.clear();
        })
        .start()
        .await
}

/// Asserts the rate limit that a first request reports.
fn assert_limit(answer: &Response, name: &str, a_second: u32) {
    assert_eq!(answer.header("ratelimit-policy"), format!("\"{name}\";q={a_second};w=1"));
    let left = format!("\"{name}\";r={};t=", a_second - 1);
    assert!(answer.header("ratelimit").starts_with(&left), "{}", answer.header("ratelimit"));
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_requests_a_second_to_10_of_a_live_token_and_20_of_a_pro_token_or_a_client() {
    let app = unconfigured().await;
    let unknown = format!("/v1/email/{}", tempmail_model::id::new_id(jiff::Timestamp::UNIX_EPOCH));
    assert_limit(&app.get(&unknown).await, "token", 10);
    let list = app.request(Method::GET, "/pro/api/accounts").bearer(&app.tenant.pro).send().await;
    assert_limit(&list, "token", 20);
    assert_limit(&app.request(Method::GET, "/api/domains").send().await, "client", 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn allows_ten_failed_sign_ins_per_address_and_client() {
    let app = App::builder()
        .config(|config| {
            let defaults = Limits::default();
            config.limits.sign_in_failures = defaults.sign_in_failures;
            config.limits.sign_in_failures_per_client = defaults.sign_in_failures_per_client;
            config.http.unlimited_networks.clear();
        })
        .start()
        .await;
    let sign_in = || app.sign_in("nobody@inbox.localhost", "wrong password");
    for _ in 0..10 {
        sign_in().await.assert_api_error(401, "invalid_credentials");
    }
    let eleventh = sign_in().await;
    eleventh.assert_api_error(429, "rate_limit_exceeded");
    assert!(eleventh.header("retry-after").parse::<u64>().is_ok_and(|seconds| (1..=900).contains(&seconds)));
}

#[tokio::test(flavor = "multi_thread")]
async fn resets_twenty_passwords_of_a_tenant_a_minute() {
    let app = App::builder()
        .config(|config| {
            config.limits.password_resets_per_minute = Limits::default().password_resets_per_minute;
        })
        .start()
        .await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    let path = format!("/pro/api/accounts/{}/reset-password", mailbox.id);
    let body = serde_json::json!({ "password": "another pass" });
    let reset = || app.request(Method::PUT, &path).bearer(&app.tenant.pro).json(&body).send();
    for number in 1..=20 {
        assert_eq!(reset().await.status, 200, "{number}");
    }
    // A few more where the first ones took long.
    let mut refused = reset().await;
    for _ in 0..20 {
        if refused.status == 200 {
            refused = reset().await;
        }
    }
    refused.assert_api_error(429, "rate_limit_exceeded");
    let seconds = refused.header("retry-after").parse::<u64>();
    assert!(seconds.is_ok_and(|seconds| (1..=3).contains(&seconds)), "then one every 3 s");
}
