//! Limits per client. The harness lifts them for loopback; these tests restore them.

use reqwest::Method;
use serde_json::json;
use tempmail_tests::{App, Response};

async fn limited(change: impl FnOnce(&mut tempmail_runtime::config::Limits)) -> App {
    App::builder()
        .config(|config| {
            config.http.unlimited_networks.clear();
            change(&mut config.limits);
        })
        .start()
        .await
}

fn assert_limited(answer: &Response) {
    answer.assert_api_error(429, "rate_limit_exceeded");
    assert!(answer.header("retry-after").parse::<u64>().is_ok_and(|seconds| seconds >= 1));
}

/// The answer to a fifth sign-in with a wrong password, each to another address.
async fn sign_in_after_four_failures(app: &App) -> Response {
    for i in 0..4 {
        let address = format!("nobody{i}@inbox.localhost");
        app.sign_in(&address, "wrong password").await.assert_api_error(401, "invalid_credentials");
    }
    app.sign_in("nobody4@inbox.localhost", "wrong password").await
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_free_mailboxes_per_hour() {
    let app = limited(|limits| limits.free_mailboxes_per_hour = 3).await;
    for i in 0..3 {
        assert_eq!(app.create_mailbox(None, &format!("m{i}@inbox.localhost"), "pass123").await.status, 201);
    }
    assert_limited(&app.create_mailbox(None, "m3@inbox.localhost", "pass123").await);
    let pro = app.create_mailbox(Some(&app.tenant.pro), "pro@inbox.localhost", "pass123").await;
    assert_eq!(pro.status, 201, "a Pro token's limit is its tenant's");
}

#[tokio::test(flavor = "multi_thread")]
async fn does_not_count_rejected_creations() {
    let app = limited(|limits| limits.free_mailboxes_per_hour = 1).await;
    for _ in 0..3 {
        let answer = app.create_mailbox(None, "admin@inbox.localhost", "pass123").await;
        answer.assert_api_error(400, "invalid_address");
        let answer = app.create_mailbox(None, "m@inbox.localhost", "short").await;
        answer.assert_api_error(400, "password_too_short");
    }
    assert_eq!(app.create_mailbox(None, "m@inbox.localhost", "pass123").await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_failed_sign_ins_per_address() {
    let app = limited(|limits| limits.sign_in_failures = 3).await;
    let mailbox = app.mailbox(None, "name@inbox.localhost").await;
    let other = app.mailbox(None, "other@inbox.localhost").await;
    for _ in 0..5 {
        assert_eq!(
            app.sign_in(&mailbox.address, &mailbox.password).await.status,
            200,
            "a success does not count"
        );
    }
    for _ in 0..3 {
        app.sign_in(&mailbox.address, "wrong password").await.assert_api_error(401, "invalid_credentials");
    }
    assert_limited(&app.sign_in(&mailbox.address, "wrong password").await);
    assert_limited(&app.sign_in("NAME@inbox.localhost", &mailbox.password).await);
    assert_eq!(app.sign_in(&other.address, &other.password).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_failed_sign_ins_per_client_over_all_addresses() {
    let app = limited(|limits| limits.sign_in_failures_per_client = 4).await;
    assert_limited(&sign_in_after_four_failures(&app).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_failed_sign_ins_of_a_client_a_minute() {
    let app = limited(|limits| limits.sign_in_failures_per_minute = 4).await;
    let fifth = sign_in_after_four_failures(&app).await;
    assert_limited(&fifth);
    assert!(fifth.header("retry-after").parse::<u64>().is_ok_and(|seconds| seconds <= 60));
}

#[tokio::test(flavor = "multi_thread")]
async fn takes_the_rightmost_untrusted_forwarded_address_as_the_client() {
    let app = App::builder()
        .config(|config| {
            config.http.unlimited_networks.clear();
            config.http.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
            config.limits.sign_in_failures_per_client = 1;
        })
        .start()
        .await;
    let attempt = |forwarded: &str| {
        let body = json!({ "address": "nobody@inbox.localhost", "password": "wrong password" });
        app.request(Method::POST, "/api/token").header("x-forwarded-for", forwarded).json(&body).send()
    };
    attempt("203.0.113.1").await.assert_api_error(401, "invalid_credentials");
    assert_limited(&attempt("198.51.100.7, 203.0.113.1").await);
    assert_limited(&attempt("198.51.100.7, 203.0.113.1, 127.0.0.1").await);
    attempt("203.0.113.2").await.assert_api_error(401, "invalid_credentials");
    // Of IPv6 a /64 has the limit, and the /56 around it twice as much.
    attempt("2001:db8:1:1::1").await.assert_api_error(401, "invalid_credentials");
    assert_limited(&attempt("2001:db8:1:1:ffff::2").await);
    attempt("2001:db8:1:2::1").await.assert_api_error(401, "invalid_credentials");
    assert_limited(&attempt("2001:db8:1:3::1").await);
}
