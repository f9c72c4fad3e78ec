//! How many may wait at once, and the rate of requests.

use std::time::Duration;

use reqwest::Method;
use tempmail_model::token::TokenKind;
use tempmail_tests::App;
use tempmail_tests::wait::eventually;

const PATH: &str = "/v1/inbox/ship@inbox.localhost";

#[tokio::test(flavor = "multi_thread")]
async fn a_second_wait_on_one_token_is_token_busy() {
    let app = App::start().await;
    let blocked = app.start_long_poll(&app.tenant.live, PATH).await;
    app.get("/v1/inbox/boat@inbox.localhost").await.is_v1_error(429, "token_busy");
    app.deliver("ship@inbox.localhost", "hit", "").await;
    assert_eq!(blocked.await.unwrap().status, 200);
    assert_eq!(app.get(PATH).await.status, 200, "the place was given back");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_eleventh_wait_of_one_tenant_on_one_address_is_addr_busy() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    let mut blocked = Vec::new();
    for _ in 0..10 {
        let token = app.token(&app.tenant, TokenKind::Live).await;
        blocked.push(app.start_long_poll(&token, PATH).await);
    }
    let eleventh = app.token(&app.tenant, TokenKind::Live).await;
    app.get_as(&eleventh, PATH).await.is_v1_error(429, "addr_busy");
    app.get_as(&eleventh, "/v1/inbox/SHIP@inbox.localhost.").await.is_v1_error(429, "addr_busy");
    // Another address, and another tenant on the same one, have places of their own.
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
async fn a_client_that_goes_away_frees_its_place() {
    let app = App::start().await;
    let blocked = app.start_long_poll(&app.tenant.live, PATH).await;
    blocked.abort();
    app.deliver("boat@inbox.localhost", "there", "").await;
    eventually("the place of a client that went away is free", || async {
        (app.get("/v1/inbox/boat@inbox.localhost").await.status == 200).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_polls_again_at_once_never_meets_its_own_place() {
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
async fn a_refused_wait_takes_no_place() {
    let app = App::start().await;
    app.deliver("ship@inbox.localhost", "there", "").await;
    for _ in 0..12 {
        app.get("/v1/inbox/a@elsewhere.example").await.is_v1_error(404, "not_found");
        app.get(&format!("{PATH}?since=bad")).await.is_v1_error(400, "invalid_request");
    }
    assert_eq!(app.get(PATH).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_above_the_rate_are_429_with_retry_after() {
    let app = App::builder().config(|config| config.limits.v1_per_second = 2).start().await;
    let unknown = format!("/v1/email/{}", tempmail_model::id::new_id(jiff::Timestamp::UNIX_EPOCH));
    let requests = (0..30).map(|_| app.get(&unknown));
    let answers = futures_util::future::join_all(requests).await;
    let (limited, served): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 429);
    assert!(served.len() >= 2, "the burst is served");
    assert!(!limited.is_empty(), "30 at once are more than 2 a second");
    for answer in limited {
        answer.is_v1_error(429, "rate_limit_exceeded");
        assert!(answer.header("retry-after").parse::<u64>().is_ok_and(|seconds| seconds >= 1));
        assert!(!answer.header("ratelimit").is_empty() && !answer.header("ratelimit-policy").is_empty());
    }
    for answer in served {
        assert!(!answer.header("ratelimit").is_empty() && !answer.header("ratelimit-policy").is_empty());
    }
    // Another token of the same tenant has a rate of its own.
    let other = app.token(&app.tenant, TokenKind::Live).await;
    assert_eq!(app.get_as(&other, &unknown).await.status, 410);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_token_ends_its_open_wait() {
    let app = App::start().await;
    let token = app.token(&app.tenant, TokenKind::Live).await;
    let blocked = app.start_long_poll(&token, PATH).await;
    let hash = tempmail_model::token::TokenHash::from_presented(TokenKind::Live, &token).unwrap();
    sqlx::query("UPDATE api_token SET revoked_at = created_at WHERE hash = $1")
        .bind(hash.as_bytes().as_slice())
        .execute(&app.pool)
        .await
        .unwrap();
    let answer = tokio::time::timeout(Duration::from_secs(20), blocked).await;
    answer.expect("the wait ends before its 25 s").unwrap().is_v1_error(401, "invalid_token");
    let refused = app.request(Method::GET, PATH).live(&token).send().await;
    refused.is_v1_error(401, "invalid_token");
}
