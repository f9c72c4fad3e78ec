//! The number of streams.

use reqwest::Method;
use tempmail_model::token::TokenKind;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, EventStream};

use super::{ADDR, USER, open, open_and_read_cursor, refused, request};

#[tokio::test(flavor = "multi_thread")]
async fn rejects_an_eleventh_stream_of_a_token() {
    let app = App::start().await;
    let mut streams = Vec::new();
    for number in 0..10 {
        streams.push(open_and_read_cursor(&app, if number % 2 == 0 { ADDR } else { USER }).await);
    }
    for path in [ADDR, USER] {
        let busy = refused(&app, path).await;
        busy.assert_v1_error(429, "token_busy");
        assert!(!busy.header("retry-after").is_empty());
    }
    // Another token of the tenant, and the token's long-poll, have slots of their own.
    let other = app.token(&app.tenant, TokenKind::Live).await;
    drop(EventStream::open(request(&app, &other, ADDR)).await);
    let wait = app.start_long_poll(&app.tenant.live, "/v1/inbox/boat@inbox.localhost").await;
    app.deliver("boat@inbox.localhost", "hit", "").await;
    assert_eq!(wait.await.unwrap().status, 200);

    streams.pop();
    eventually("the slot of a disconnected client is free", || async {
        let opened = EventStream::try_open(request(&app, &app.tenant.live, ADDR)).await.unwrap();
        opened.ok().map(drop)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_and_head_requests_use_no_slot() {
    let app = App::builder().config(|config| config.http.streams = 1).start().await;
    for _ in 0..12 {
        refused(&app, "/v1/sse/addr?address=a@elsewhere.example").await.assert_v1_error(404, "not_found");
        refused(&app, &format!("{ADDR}&since=bad")).await.assert_v1_error(400, "invalid_request");
        let head = app.request(Method::HEAD, ADDR).live(&app.tenant.live).send().await;
        assert_eq!((head.status, head.media_type()), (200, "text/event-stream"));
    }
    drop(open_and_read_cursor(&app, ADDR).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_sse_unavailable_when_the_process_is_full() {
    let app = App::builder().config(|config| config.http.streams = 2).start().await;
    let other = app.another_tenant("lighthouse").await;
    let mut held = vec![open(&app, ADDR).await];
    refused(&app, USER).await.assert_v1_error(503, "sse_unavailable");
    let of_other = EventStream::try_open(request(&app, &other.live, ADDR)).await.unwrap();
    held.push(of_other.expect("a tenant leaves room to others"));
    for live in [&app.tenant.live, &other.live] {
        let full = EventStream::refused(request(&app, live, ADDR)).await;
        full.assert_v1_error(503, "sse_unavailable");
        assert!(full.header("retry-after").parse::<u64>().is_ok_and(|seconds| seconds >= 1));
    }
    drop(held);
    eventually("the process has capacity again", || async {
        EventStream::try_open(request(&app, &other.live, ADDR)).await.unwrap().ok().map(drop)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_sse_unavailable_while_the_stream_position_is_stale() {
    let app = App::start().await;
    let mut held = open_and_read_cursor(&app, ADDR).await;
    sqlx::query("ALTER TABLE stream RENAME TO elsewhere").execute(&app.pool).await.unwrap();
    let lost = eventually("new streams are rejected", || async {
        let asked = EventStream::try_open(request(&app, &app.tenant.live, USER)).await.unwrap();
        asked.err().filter(|answer| answer.status == 503 && answer.error(503) == "sse_unavailable")
    })
    .await;
    assert!(!lost.header("retry-after").is_empty());
    refused(&app, ADDR).await.assert_v1_error(503, "sse_unavailable");

    sqlx::query("ALTER TABLE elsewhere RENAME TO stream").execute(&app.pool).await.unwrap();
    eventually("new streams are accepted", || async {
        EventStream::try_open(request(&app, &app.tenant.live, ADDR)).await.unwrap().ok().map(drop)
    })
    .await;
    super::assert_nothing_unread(&app, &mut held, super::ADDRESS).await;
}
