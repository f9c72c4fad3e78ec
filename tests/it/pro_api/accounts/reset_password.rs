//! `PUT /pro/api/accounts/{id}/reset-password`

use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::clock::Clock as _;
use tempmail_model::id::new_id;
use tempmail_tests::rows::{self, ManagedKind};
use tempmail_tests::wait::{eventually, within_deadline};
use tempmail_tests::{App, Response};

use crate::pro_api::pro;

fn path(id: impl std::fmt::Display) -> String {
    format!("/pro/api/accounts/{id}/reset-password")
}

async fn reset(app: &App, id: impl std::fmt::Display, password: Value) -> Response {
    pro(app, Method::PUT, &path(id)).json(&json!({ "password": password })).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn replaces_the_password() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    app.deliver("name@inbox.localhost", "stays", "").await;
    let answer = reset(&app, mailbox.id, json!("another pass")).await;
    assert_eq!(answer.expect(200), json!({ "message": "password_reset" }));
    app.sign_in(&mailbox.address, &mailbox.password).await.assert_api_error(401, "invalid_credentials");
    let signed_in = app.sign_in(&mailbox.address, "another pass").await.expect(200);
    assert_eq!(signed_in["id"], mailbox.id.to_string());
    let jwt = signed_in["token"].as_str().unwrap();
    let messages = app.request(Method::GET, "/api/messages").bearer(jwt).send().await.expect(200);
    assert_eq!(messages["messages"][0]["subject"], "stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalidates_older_jwts_at_once() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    let mut jwts = vec![mailbox.jwt.clone()];
    for password in ["second pass", "third pass"] {
        assert_eq!(reset(&app, mailbox.id, json!(password)).await.status, 200);
        for jwt in &jwts {
            for path in ["/api/me", "/api/messages"] {
                let answer = app.request(Method::GET, path).bearer(jwt).send().await;
                answer.assert_api_error(401, "invalid_token");
            }
        }
        let signed_in = app.sign_in(&mailbox.address, password).await.expect(200);
        jwts.push(signed_in["token"].as_str().unwrap().to_owned());
    }
    let newest = app.request(Method::GET, "/api/me").bearer(&jwts[2]).send().await;
    assert_eq!(newest.status, 200, "and no newer one");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_concurrent_readers_after_the_reset() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    let reads = AtomicUsize::new(0);
    let readers = (0..8).map(|_| async {
        loop {
            let answer = app.get_mailbox(&mailbox, "/api/messages").await;
            match answer.status {
                200 => {
                    reads.fetch_add(1, Ordering::Relaxed);
                }
                // Busy.
                503 => {}
                _ => {
                    answer.assert_api_error(401, "invalid_token");
                    break;
                }
            }
        }
    });
    let readers = within_deadline("all readers are rejected", futures_util::future::join_all(readers));
    let (_, answer) = tokio::join!(readers, async {
        eventually("a reader reads", || async { (reads.load(Ordering::Relaxed) > 0).then_some(()) }).await;
        reset(&app, mailbox.id, json!("another pass")).await
    });
    assert_eq!(answer.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn requires_a_password_of_6_to_128_characters() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    for short in ["", "12345", "ééééé"] {
        reset(&app, mailbox.id, json!(short)).await.assert_api_error(400, "password_too_short");
    }
    reset(&app, mailbox.id, json!("x".repeat(129))).await.assert_api_error(400, "password_too_long");
    assert_eq!(app.get_mailbox(&mailbox, "/api/me").await.status, 200, "nothing was changed");
    assert_eq!(reset(&app, mailbox.id, json!("é".repeat(128))).await.status, 200);
    assert_eq!(reset(&app, mailbox.id, json!("123456")).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_the_resets_of_a_tenant_a_minute() {
    let app = App::builder().config(|config| config.limits.password_resets_per_minute = 2).start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    for _ in 0..3 {
        reset(&app, mailbox.id, json!("short")).await.assert_api_error(400, "password_too_short");
    }
    reset(&app, new_id(app.clock.now()), json!("another pass")).await.assert_api_error(404, "not_found");
    assert_eq!(reset(&app, mailbox.id, json!("second pass")).await.status, 200);
    let third = reset(&app, mailbox.id, json!("third pass")).await;
    third.assert_api_error(429, "rate_limit_exceeded");
    assert!(third.header("retry-after").parse::<u64>().is_ok_and(|seconds| (1..=30).contains(&seconds)));
    assert_eq!(app.sign_in(&mailbox.address, "second pass").await.status, 200, "nothing was changed");

    let other = app.another_tenant("lighthouse").await;
    let theirs = app.mailbox(Some(&other.pro), "theirs@inbox.localhost").await;
    let request = app.request(Method::PUT, &path(theirs.id)).bearer(&other.pro);
    assert_eq!(
        request.json(&json!({ "password": "another pass" })).send().await.status,
        200,
        "each has its own"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_the_reset_of_a_mailbox_managed_by_kubernetes() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    rows::manage_by_kubernetes(&app.pool, ManagedKind::Mailbox, mailbox.id).await;
    let answer = reset(&app, mailbox.id, json!("another pass")).await;
    answer.assert_api_error(409, "managed_by_kubernetes");
    assert_eq!(app.get_mailbox(&mailbox, "/api/me").await.status, 200);
    assert_eq!(app.sign_in(&mailbox.address, &mailbox.password).await.status, 200);
}
