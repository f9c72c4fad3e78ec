//! Rate limits of every operation. The harness lifts them; these tests restore them.

use reqwest::Method;
use tempmail_model::token::TokenKind;
use tempmail_tests::App;
use tempmail_tests::contract::operations;

use super::{Credentials, full_request, unknown_path};

#[tokio::test(flavor = "multi_thread")]
async fn returns_429_above_the_rate_of_a_token() {
    let limited = |config: &mut tempmail_runtime::config::Config| {
        config.limits.v1_per_second = 1;
        config.limits.pro_per_second = 1;
    };
    let app = App::builder().config(limited).start().await;
    let owned = app.mailbox(Some(&app.tenant.pro), "owned@inbox.localhost").await;
    let counted = operations().iter().filter(|operation| !operation.is_open);
    for operation in counted.filter(|operation| operation.credentials != ["mailbox"]) {
        // Some operations delete mail, and others wait until there is some.
        for address in [super::FULL, &owned.address] {
            app.deliver(address, "there", "").await;
        }
        // A token per operation, so that their rates are independent.
        let credentials = Credentials {
            mailbox: String::new(),
            pro: app.token(&app.tenant, TokenKind::Pro).await,
            live: app.token(&app.tenant, TokenKind::Live).await,
        };
        loop {
            let answer = full_request(&app, operation, &credentials, &unknown_path(operation)).send().await;
            if answer.status == 429 {
                assert_eq!(answer.error(429), "rate_limit_exceeded", "{}", operation.id);
                break;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_429_above_the_rate_of_a_client() {
    let limited = |config: &mut tempmail_runtime::config::Config| {
        config.http.unlimited_networks.clear();
        config.http.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
        config.limits.api_per_second = 1;
        config.limits.refused_per_minute = 1;
    };
    let app = App::builder().config(limited).start().await;
    let by_client = operations().iter().filter(|operation| operation.fails_with("rate_limit_exceeded"));
    let by_client = by_client.filter(|operation| operation.is_open || operation.credentials == ["mailbox"]);
    for (number, operation) in by_client.enumerate() {
        // A client per operation, so that their rates are independent.
        let client = format!("203.0.113.{number}");
        loop {
            let request = app.request(operation.method.clone(), &unknown_path(operation));
            let request = request.header("x-forwarded-for", &client);
            let request = match operation.bodies.first() {
                Some(body) => request.json(&body.example),
                None => request,
            };
            let answer = request.send().await;
            if answer.status == 429 {
                assert_eq!(answer.error(429), "rate_limit_exceeded", "{}", operation.id);
                break;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_requests_to_unknown_paths() {
    let limited = |config: &mut tempmail_runtime::config::Config| {
        config.http.unlimited_networks.clear();
        config.limits.api_per_second = 1;
    };
    let app = App::builder().config(limited).start().await;
    let requests = (0..60).map(|_| app.request(Method::GET, "/api/nothing").send());
    let answers = futures_util::future::join_all(requests).await;
    assert!(answers.iter().any(|answer| answer.status == 429));
}
