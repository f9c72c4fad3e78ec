//! Concurrent waits, and the rate of requests.

use jiff::SignedDuration;
use reqwest::Method;
use tempmail_model::clock::Clock as _;
use tempmail_model::token::TokenKind;
use tempmail_tests::App;
use tempmail_tests::http::split_by_rate_limit;
use tempmail_tests::rows;
use tempmail_tests::wait::eventually;
use tempmail_tests::wait::within_deadline;

const PATH: &str = "/v1/inbox/ship@inbox.localhost";

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_second_wait_of_a_token() {
    let app = App::start().await;
    let blocked = app.start_long_poll(&app.tenant.live, PATH).await;
    app.get("/v1/inbox/boat@inbox.localhost").await.assert_v1_error(429, "token_busy");
    app.deliver("ship@inbox.localhost", "hit", "").await;
    assert_eq!(blocked.await.unwrap().status, 200);
    assert_eq!(app.get(PATH).await.status, 200, "the slot is free again");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_an_eleventh_wait_of_a_tenant_on_an_address() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    let mut blocked = Vec::new();
    for _ in 0..10 {
        let token = app.token(&app.tenant, TokenKind::Live).await;
        blocked.push(app.start_long_poll(&token, PATH).await);
    }
    let eleventh = app.token(&app.tenant, TokenKind::Live).await;
    app.get_as(&eleventh, PATH).await.assert_v1_error(429, "addr_busy");
    app.get_as(&eleventh, "/v1/inbox/SHIP@inbox.localhost.").await.assert_v1_error(429, "addr_busy");
    // Another address, and another tenant on this address, have their own slots.
    let elsewhere = app.start_long_poll(&eleventh, "/v1/inbox/boat@inbox.localhost").await;
    blocked.push(app.start_long_poll(&other.live, PATH).await);

    app.deliver("ship@inbox.localhost", "hit", "").await;
    app.deliver("boat@inbox.localhost", "hit", "").await;
    blocked.push(elsewhere);
    for wait in blocked {
        assert_eq!(wait.await.unwrap().status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn frees_the_slot_of_a_client_that_disconnects() {
    let app = App::start().await;
    let blocked = app.start_long_poll(&app.tenant.live, PATH).await;
    blocked.abort();
    app.deliver("boat@inbox.localhost", "there", "").await;
    eventually("the slot of a disconnected client is free", || async {
        (app.get("/v1/inbox/boat@inbox.localhost").await.status == 200).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn frees_the_slot_before_the_response_is_sent() {
    let app = App::start().await;
    app.deliver("ship@inbox.localhost", "0", "").await;
    let mut since = app.get(PATH).await.expect(200)["next_since"].as_str().unwrap().to_owned();
    for i in 1..=30 {
        let path = format!("{PATH}?since={since}");
        let (answer, ()) = tokio::join!(app.get(&path), async {
            app.deliver("ship@inbox.localhost", &format!("{i}"), "").await;
        });
        let answer = answer.expect(200);
        assert_eq!(answer["emails"][0]["subject"], format!("{i}"));
        since = answer["next_since"].as_str().unwrap().to_owned();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_waits_use_no_slot() {
    let app = App::start().await;
    app.deliver("ship@inbox.localhost", "there", "").await;
    for _ in 0..12 {
        app.get("/v1/inbox/a@elsewhere.example").await.assert_v1_error(404, "not_found");
        app.get(&format!("{PATH}?since=bad")).await.assert_v1_error(400, "invalid_request");
    }
    assert_eq!(app.get(PATH).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_429_with_retry_after_above_the_rate() {
    let app = App::builder().config(|config| config.limits.v1_per_second = 1).start().await;
    let unknown = format!("/v1/email/{}", tempmail_model::id::new_id(jiff::Timestamp::UNIX_EPOCH));
    let requests = (0..60).map(|_| app.get(&unknown));
    let answers = futures_util::future::join_all(requests).await;
    split_by_rate_limit(&answers);
    // Another token of the same tenant has a rate of its own.
    let other = app.token(&app.tenant, TokenKind::Live).await;
    assert_eq!(app.get_as(&other, &unknown).await.status, 410);
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_the_wait_of_a_revoked_token() {
    let app = App::start().await;
    let token = app.token(&app.tenant, TokenKind::Live).await;
    let blocked = app.start_long_poll(&token, PATH).await;
    rows::revoke_token(&app.pool, &token, app.clock.now()).await;
    within_deadline("the wait ends", blocked).await.unwrap().assert_v1_error(401, "invalid_token");
    let refused = app.request(Method::GET, PATH).live(&token).send().await;
    refused.assert_v1_error(401, "invalid_token");
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_the_wait_of_a_token_that_expires() {
    let app = App::start().await;
    let token = app.token(&app.tenant, TokenKind::Live).await;
    rows::expire_token(&app.pool, &token, app.clock.now() + SignedDuration::from_hours(1)).await;
    let blocked = app.start_long_poll(&token, PATH).await;
    app.advance_hours(2);
    within_deadline("the wait ends", blocked).await.unwrap().assert_v1_error(440, "session_expired");
}
