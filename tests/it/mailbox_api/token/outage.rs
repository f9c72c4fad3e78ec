//! Sign-ins while Postgres is away.

use reqwest::Method;
use serde_json::json;
use tempmail_tests::Fleet;
use tempmail_tests::postgres::PostgresProxy;
use tempmail_tests::wait::eventually;

#[tokio::test(flavor = "multi_thread")]
async fn does_not_count_sign_ins_while_postgres_is_away() {
    let proxy = PostgresProxy::start().await;
    let fleet = Fleet::builder().apis(1).ingests(0).workers(0).postgres_through(proxy.port());
    let fleet = fleet.config(|config| {
        config.http.unlimited_networks.clear();
        config.limits.sign_in_failures = 2;
        config.limits.sign_in_failures_per_client = 3;
    });
    let fleet = fleet.start().await;
    let mailbox = fleet.mailbox(None, "name@inbox.localhost").await;
    let sign_in = async |password: &str| {
        let body = json!({ "address": mailbox.address, "password": password });
        fleet.request(0, Method::POST, "/api/token").json(&body).send().await
    };
    proxy.cut();
    for _ in 0..5 {
        sign_in(&mailbox.password).await.assert_api_error(503, "unavailable");
    }
    proxy.restore();
    let signed_in = eventually("Postgres is back", || async {
        Some(sign_in(&mailbox.password).await).filter(|answer| answer.status != 503)
    });
    assert_eq!(signed_in.await.status, 200);
    // Wrong passwords are counted as ever.
    for _ in 0..2 {
        sign_in("wrong password").await.assert_api_error(401, "invalid_credentials");
    }
    sign_in(&mailbox.password).await.assert_api_error(429, "rate_limit_exceeded");
}
