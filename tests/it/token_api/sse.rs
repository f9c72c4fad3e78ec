//! `/v1/sse`: streams of server-sent events.

mod cursor;
mod interruption;
mod revocation;

use reqwest::Method;
use serde_json::Value;
use tempmail_model::token::TokenKind;
use tempmail_tests::http::{Request, split_by_rate_limit};
use tempmail_tests::sse::Event;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, EventStream, Response};

const ADDRESS: &str = "ship@inbox.localhost";

const ADDR: &str = "/v1/sse/addr?address=ship@inbox.localhost";

const USER: &str = "/v1/sse/user";

fn request(app: &App, live: &str, path: &str) -> Request {
    app.request(Method::GET, path).live(live)
}

/// Opens a stream of the tenant.
async fn open(app: &App, path: &str) -> EventStream {
    EventStream::open(request(app, &app.tenant.live, path)).await
}

/// Opens a stream of the tenant and reads its first cursor.
async fn open_and_read_cursor(app: &App, path: &str) -> EventStream {
    let mut stream = open(app, path).await;
    stream.block().await;
    stream
}

async fn refused(app: &App, path: &str) -> Response {
    EventStream::refused(request(app, &app.tenant.live, path)).await
}

/// Subject of a `new_email` event.
fn subject(event: &Event) -> String {
    assert_eq!(event.name, "new_email");
    let summary: Value = serde_json::from_str(&event.data).expect("the data of an event is JSON");
    summary["subject"].as_str().expect("a subject is a text").to_owned()
}

/// Subjects of the next events.
async fn subjects(stream: &mut EventStream, count: usize) -> Vec<String> {
    let mut subjects = Vec::new();
    for _ in 0..count {
        subjects.push(subject(&stream.next().await));
    }
    subjects
}

/// Asserts that no event is unread: a mail that is sent now is the next one.
async fn assert_nothing_unread(app: &App, stream: &mut EventStream, address: &str) {
    app.deliver(address, "a mail to be next", "").await;
    assert_eq!(subject(&stream.next().await), "a mail to be next");
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_its_cursor_first_and_then_each_mail() {
    let app = App::start().await;
    app.deliver(ADDRESS, "before", "").await;
    let mut stream = open(&app, ADDR).await;
    let head = stream.head();
    for (name, value) in
        [("content-type", "text/event-stream"), ("cache-control", "no-store"), ("x-accel-buffering", "no")]
    {
        assert_eq!(head.header(name), value);
    }
    let first = stream.block().await;
    assert_eq!((first.retry, first.event, first.data, first.comments), (Some(3000), None, None, vec![]));
    let id = first.id.expect("the first block has an id");

    app.deliver(ADDRESS, "Your code", "Your code is 4711.").await;
    let event = stream.next().await;
    assert!(event.name == "new_email" && event.id != id && !event.id.is_empty());
    let email: Value = serde_json::from_str(&event.data).unwrap();
    let listed = app.emails(ADDRESS).await;
    assert_eq!(email, listed[0], "the same summary as a long-poll lists");
    assert_eq!(email["preview_text"], "Your code is 4711.");
    assert_eq!(email["address"], ADDRESS);
    app.deliver(ADDRESS, "one more", "").await;
    assert_eq!(subject(&stream.next().await), "one more");
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_a_space_in_the_address_as_a_plus() {
    let app = App::start().await;
    app.mailbox(Some(&app.tenant.pro), ADDRESS).await;
    let mut streams = Vec::new();
    for address in ["ship+tag@inbox.localhost", "ship%2Btag@inbox.localhost", "SHIP%20tag@Inbox.localhost."] {
        streams.push(open_and_read_cursor(&app, &format!("/v1/sse/addr?address={address}")).await);
    }
    let mut whole = open_and_read_cursor(&app, ADDR).await;
    app.deliver("ship+other@inbox.localhost", "other", "").await;
    app.deliver("ship+tag@inbox.localhost", "tagged", "").await;
    app.deliver(ADDRESS, "plain", "").await;
    for stream in &mut streams {
        assert_eq!(subject(&stream.next().await), "tagged");
        assert_nothing_unread(&app, stream, "ship+tag@inbox.localhost").await;
        subjects(&mut whole, 1).await;
    }
    drop(whole);
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_all_tags_of_a_mailbox_in_arrival_order() {
    let app = App::start().await;
    app.mailbox(Some(&app.tenant.pro), ADDRESS).await;
    let mut stream = open_and_read_cursor(&app, ADDR).await;
    for (address, subject) in
        [("ship+a@inbox.localhost", "1"), (ADDRESS, "2"), ("boat@inbox.localhost", "x"), (ADDRESS, "3")]
    {
        app.deliver(address, subject, "").await;
    }
    assert_eq!(subjects(&mut stream, 3).await, ["1", "2", "3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_400_for_a_missing_malformed_or_repeated_address() {
    let app = App::start().await;
    for query in [
        "",
        "?address=",
        "?address=nobody",
        "?address=@inbox.localhost",
        "?address=a@@inbox.localhost",
        "?address=%00@inbox.localhost",
        "?address=a@inbox.localhost&address=b@inbox.localhost",
    ] {
        refused(&app, &format!("/v1/sse/addr{query}")).await.assert_v1_error(400, "invalid_request");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_an_unreadable_address_like_an_unknown_one() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    app.mailbox(Some(&other.pro), "theirs@inbox.localhost").await;
    app.mailbox(None, "free@inbox.localhost").await;
    app.custom_domain(&other, "theirs.example").await;
    let lost = app.custom_domain(&app.tenant, "lost.example").await;
    app.end_verification(lost).await;
    app.system_domain("closed.localhost", false).await;
    let unserved = refused(&app, "/v1/sse/addr?address=a@elsewhere.example").await;
    unserved.assert_v1_error(404, "not_found");
    for address in [
        "theirs@inbox.localhost",
        "theirs%2Btag@inbox.localhost",
        "free@inbox.localhost",
        "a@theirs.example",
        "a@lost.example",
        "a@closed.localhost",
        "admin@inbox.localhost",
        "a@%5B127.0.0.1%5D",
    ] {
        let answer = refused(&app, &format!("/v1/sse/addr?address={address}")).await;
        assert_eq!(answer.appearance(), unserved.appearance(), "{address}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_mail_of_mailboxes_and_verified_domains_only() {
    let app = App::start().await;
    let other = app.another_tenant("lighthouse").await;
    app.mailbox(Some(&app.tenant.pro), "ours@inbox.localhost").await;
    app.custom_domain(&app.tenant, "ours.example").await;
    app.mailbox(Some(&app.tenant.pro), "box@ours.example").await;
    app.mailbox(Some(&other.pro), "theirs@inbox.localhost").await;
    app.custom_domain(&other, "theirs.example").await;
    app.mailbox(None, "free@inbox.localhost").await;
    let mut stream = open_and_read_cursor(&app, USER).await;
    for (address, subject) in [
        ("ours@inbox.localhost", "1"),
        ("theirs@inbox.localhost", "x"),
        ("ours+tag@inbox.localhost", "2"),
        ("any.name@theirs.example", "x"),
        ("any.name@ours.example", "3"),
        ("free@inbox.localhost", "x"),
        ("box@ours.example", "4"),
        ("shared@inbox.localhost", "x"),
        ("ours@inbox.localhost", "5"),
    ] {
        app.deliver(address, subject, "").await;
    }
    assert_eq!(subjects(&mut stream, 5).await, ["1", "2", "3", "4", "5"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_mail_of_mailboxes_and_domains_created_while_open() {
    let app = App::start().await;
    let mut stream = open_and_read_cursor(&app, USER).await;
    app.mailbox(Some(&app.tenant.pro), "late@inbox.localhost").await;
    app.deliver("late@inbox.localhost", "to the mailbox", "").await;
    app.custom_domain(&app.tenant, "late.example").await;
    app.deliver("any@late.example", "to the domain", "").await;
    assert_eq!(subjects(&mut stream, 2).await, ["to the mailbox", "to the domain"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn drops_a_lost_domain_and_stays_open() {
    let app = App::start().await;
    app.mailbox(Some(&app.tenant.pro), "ours@inbox.localhost").await;
    let domain = app.custom_domain(&app.tenant, "ours.example").await;
    let mut stream = open_and_read_cursor(&app, USER).await;
    let cursor = stream.last_event_id().to_owned();
    app.deliver("a@ours.example", "while it was ours", "").await;
    assert_eq!(subjects(&mut stream, 1).await, ["while it was ours"]);
    app.end_verification(domain).await;
    assert_nothing_unread(&app, &mut stream, "ours@inbox.localhost").await;
    // A stream that resumes before it does not get it any more.
    let mut resumed = open_and_read_cursor(&app, &format!("{USER}?since={cursor}")).await;
    assert_eq!(subjects(&mut resumed, 1).await, ["a mail to be next"]);
}

/// `matrix` presents every token in the header, in the query and in both.
#[tokio::test(flavor = "multi_thread")]
async fn takes_an_empty_header_for_none_and_no_token_twice() {
    let app = App::start().await;
    let with_token = format!("{ADDR}&token={}", app.tenant.live);
    let answer = app.request(Method::GET, &with_token).live("").send().await;
    assert_eq!((answer.status, answer.media_type()), (200, "text/event-stream"));
    let twice = app.request(Method::GET, &format!("{with_token}&token={}", app.tenant.live)).send().await;
    twice.assert_v1_error(401, "invalid_token");
}

#[tokio::test(flavor = "multi_thread")]
async fn rate_limits_a_query_token_and_accepts_it_for_streams_only() {
    let app = App::builder().config(|config| config.limits.v1_per_second = 1).start().await;
    let path = format!("{USER}?token={}", app.tenant.live);
    let answers = futures_util::future::join_all((0..60).map(|_| app.request(Method::GET, &path).send()));
    split_by_rate_limit(&answers.await);
    let elsewhere = app.request(Method::GET, &format!("/v1/me?token={}", app.tenant.live)).send().await;
    elsewhere.assert_v1_error(401, "authentication_required");
}

#[tokio::test(flavor = "multi_thread")]
async fn allows_a_page_of_an_allowed_origin() {
    let app = App::start().await;
    let request = request(&app, &app.tenant.live, USER).header("origin", "http://127.0.0.1:8080");
    let stream = EventStream::open(request).await;
    assert_eq!(stream.head().header("access-control-allow-origin"), "http://127.0.0.1:8080");
}

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
    assert_nothing_unread(&app, &mut held, ADDRESS).await;
}
