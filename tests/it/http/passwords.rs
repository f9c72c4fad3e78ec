//! Passwords are hashed in turns, and only where no limit refuses the request before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::available_parallelism;

use reqwest::Method;
use serde_json::json;
use tempmail_tests::app::Mailbox;
use tempmail_tests::{Fleet, Response, Tenant};

/// Requests that a tenant makes at a time beyond those that may wait, and run: they are refused.
const REFUSED: usize = 6;
/// Passwords of a tenant that may wait.
const WAITING: usize = 16;
/// Passwords that were hashed, or compared with a hash.
const HASHES: &str = "tempmail_password_hashes_total";

async fn reset(fleet: &Fleet, tenant: &Tenant, mailbox: &Mailbox) -> Response {
    let path = format!("/pro/api/accounts/{}/reset-password", mailbox.id);
    let request = fleet.request(0, Method::PUT, &path).bearer(&tenant.pro);
    request.json(&json!({ "password": "battery staple" })).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn hashes_for_one_tenant_while_another_floods() {
    let fleet = Arc::new(Fleet::builder().apis(1).ingests(0).workers(0).start().await);
    let victim = fleet.another_tenant("inland").await;
    let own = fleet.mailbox(Some(&victim.pro), "victim@inbox.localhost").await;
    let theirs = fleet.mailbox(Some(&fleet.tenant.pro), "flood@inbox.localhost").await;
    let stop = Arc::new(AtomicBool::new(false));
    let running = available_parallelism().unwrap().get();
    let flood = (0..running + WAITING + REFUSED).map(|_| {
        let (fleet, theirs, stop) = (Arc::clone(&fleet), theirs.clone(), Arc::clone(&stop));
        tokio::spawn(async move {
            let mut refused = 0;
            while !stop.load(Ordering::Relaxed) {
                match reset(&fleet, &fleet.tenant, &theirs).await.status {
                    200 => {}
                    503 => refused += 1,
                    other => panic!("{other}"),
                }
            }
            refused
        })
    });
    let flood: Vec<_> = flood.collect();
    for round in 0..20 {
        let answer = reset(&fleet, &victim, &own).await;
        assert_eq!(answer.status, 200, "round {round}: {}", answer.text());
        let body = json!({ "address": own.address, "password": "battery staple" });
        let signed_in = fleet.request(0, Method::POST, "/api/token").json(&body).send().await;
        assert_eq!(signed_in.status, 200, "round {round}: {}", signed_in.text());
    }
    stop.store(true, Ordering::Relaxed);
    let mut refused = 0;
    for task in flood {
        refused += task.await.unwrap();
    }
    assert!(refused > 0, "the flood asks for more than its share");
    let metric = "tempmail_http_refused_total{code=\"unavailable\",reason=\"passwords\"}";
    assert!(fleet.api(0).metric(metric).await > 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_limits_before_hashing() {
    let fleet = Fleet::builder().apis(1).ingests(0).workers(0).config(|config| {
        config.http.unlimited_networks.clear();
        config.limits.sign_in_failures = 1;
    });
    let fleet = fleet.start().await;
    let mailbox = fleet.mailbox(Some(&fleet.tenant.pro), "only@inbox.localhost").await;
    let sign_in = async || {
        let body = json!({ "address": mailbox.address, "password": "wrong password" });
        fleet.request(0, Method::POST, "/api/token").json(&body).send().await.status
    };
    assert_eq!(sign_in().await, 401);
    let before = fleet.api(0).metric(HASHES).await;
    assert!(before >= 2.0, "{before}");
    assert_eq!(sign_in().await, 429);
    sqlx::query("UPDATE tenant SET mailbox_limit = 1 WHERE id = $1")
        .bind(fleet.tenant.id)
        .execute(&fleet.pool)
        .await
        .unwrap();
    let body = json!({ "address": "second@inbox.localhost", "password": "correct horse" });
    let request = fleet.request(0, Method::POST, "/api/accounts").bearer(&fleet.tenant.pro);
    request.json(&body).send().await.assert_api_error(403, "account_limit_reached");
    let after = fleet.api(0).metric(HASHES).await;
    assert!((after - before).abs() < f64::EPSILON, "{before} before, {after} after");
}
