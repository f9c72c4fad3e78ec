//! How many streams there may be.

use reqwest::Method;
use tempmail_model::token::TokenKind;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, EventStream};

use super::{ADDR, USER, ask, begun, open, refused};

#[tokio::test(flavor = "multi_thread")]
async fn an_eleventh_stream_of_a_token_is_token_busy() {
    let app = App::start().await;
    let mut streams = Vec::new();
    for number in 0..10 {
        streams.push(begun(&app, if number % 2 == 0 { ADDR } else { USER }).await);
    }
    for path in [ADDR, USER] {
        let busy = refused(&app, path).await;
        busy.is_v1_error(429, "token_busy");
        assert!(!busy.header("retry-after").is_empty());
    }
    // Another token of the tenant, and the token's long-poll, have places of their own.
    let other = app.token(&app.tenant, TokenKind::Live).await;
    drop(EventStream::open(ask(&app, &other, ADDR)).await);
    let wait = app.start_long_poll(&app.tenant.live, "/v1/inbox/boat@inbox.localhost").await;
    app.deliver("boat@inbox.localhost", "hit", "").await;
    assert_eq!(wait.await.unwrap().status, 200);

    streams.pop();
    eventually("the place of a client that went away is free", || async {
        let opened = EventStream::try_open(ask(&app, &app.tenant.live, ADDR)).await.unwrap();
        opened.ok().map(drop)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_and_what_has_no_body_takes_no_place() {
    let app = App::builder().config(|config| config.http.streams = 1).start().await;
    for _ in 0..12 {
        refused(&app, "/v1/sse/addr?address=a@elsewhere.example").await.is_v1_error(404, "not_found");
        refused(&app, &format!("{ADDR}&since=bad")).await.is_v1_error(400, "invalid_request");
        let head = app.request(Method::HEAD, ADDR).live(&app.tenant.live).send().await;
        assert_eq!((head.status, head.media_type()), (200, "text/event-stream"));
    }
    drop(begun(&app, ADDR).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_process_is_sse_unavailable() {
    let app = App::builder().config(|config| config.http.streams = 2).start().await;
    let other = app.another_tenant("lighthouse").await;
    let held = [open(&app, ADDR).await, open(&app, USER).await];
    for live in [&app.tenant.live, &other.live] {
        let full = EventStream::refused(ask(&app, live, ADDR)).await;
        full.is_v1_error(503, "sse_unavailable");
        assert!(full.header("retry-after").parse::<u64>().is_ok_and(|seconds| seconds >= 1));
    }
    drop(held);
    eventually("there is room again", || async {
        EventStream::try_open(ask(&app, &other.live, ADDR)).await.unwrap().ok().map(drop)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_has_lost_sight_of_mail_is_sse_unavailable_for_a_while() {
    let app = App::start().await;
    let mut held = begun(&app, ADDR).await;
    sqlx::query("ALTER TABLE stream RENAME TO elsewhere").execute(&app.pool).await.unwrap();
    let lost = eventually("new streams are refused", || async {
        let asked = EventStream::try_open(ask(&app, &app.tenant.live, USER)).await.unwrap();
        asked.err().filter(|answer| answer.status == 503)
    })
    .await;
    assert!(!lost.header("retry-after").is_empty());
    refused(&app, ADDR).await.is_v1_error(503, "sse_unavailable");

    sqlx::query("ALTER TABLE elsewhere RENAME TO stream").execute(&app.pool).await.unwrap();
    eventually("new streams are taken", || async {
        EventStream::try_open(ask(&app, &app.tenant.live, ADDR)).await.unwrap().ok().map(drop)
    })
    .await;
    super::is_next(&app, &mut held, super::ADDRESS).await;
}
