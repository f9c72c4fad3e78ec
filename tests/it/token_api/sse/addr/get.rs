//! `GET /v1/sse/addr`: mail of one address.

use serde_json::Value;
use tempmail_tests::App;

use super::super::{
    ADDR, ADDRESS, assert_nothing_unread, open, open_and_read_cursor, refused, subject, subjects,
};

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
