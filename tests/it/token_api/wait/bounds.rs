//! What one request may look at.

use serde_json::json;
use tempmail_tests::{App, rows};

use super::{ADDRESS, look, subject};

/// Messages that a request scans.
const SCANNED: i64 = 10_000;
/// Messages whose contents a request looks at.
const READ: i64 = 200;

#[tokio::test(flavor = "multi_thread")]
async fn returns_204_with_the_cursor_after_10_000_messages() {
    let app = App::start().await;
    app.deliver(ADDRESS, "other", "").await;
    rows::copy_newest_message(&app.pool, ADDRESS, SCANNED - 1).await;
    app.deliver(ADDRESS, "wanted", "").await;
    let wanted = json!({ "since": "0", "match": { "subject": "wanted" }, "timeout": 300 });
    let first = app.wait_for_email(&app.tenant.live, &super::on_address(&wanted)).await;
    assert_eq!(first.status, 204, "at once, whatever the timeout");
    let next = json!({ "since": first.header("x-next-since"), "match": { "subject": "wanted" } });
    assert_eq!(subject(&look(&app, &next).await.expect(200)), "wanted");

    let path = format!("/v1/inbox/{ADDRESS}?subject=wanted&since");
    let long_poll = app.get(&format!("{path}=0")).await;
    assert_eq!(long_poll.status, 204, "at once, too");
    let answer = app.get(&format!("{path}={}", long_poll.header("x-next-since"))).await.expect(200);
    assert_eq!(answer["emails"][0]["subject"], "wanted");
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_204_with_the_cursor_after_200_messages_whose_contents_were_looked_at() {
    let app = App::start().await;
    app.deliver(ADDRESS, "other", "nothing").await;
    rows::copy_newest_message(&app.pool, ADDRESS, READ - 1).await;
    app.deliver(ADDRESS, "cheap", "nothing").await;
    app.deliver(ADDRESS, "wanted", "the needle").await;
    let wanted = json!({ "text": "needle" });
    let body = json!({ "since": "0", "match": wanted, "timeout": 300 });
    let first = app.wait_for_email(&app.tenant.live, &super::on_address(&body)).await;
    assert_eq!(first.status, 204, "at once, whatever the timeout");
    let next = json!({ "since": first.header("x-next-since"), "match": wanted });
    assert_eq!(subject(&look(&app, &next).await.expect(200)), "wanted");

    // What costs little is compared first, so only few contents are looked at.
    let cheap = json!({ "since": "0", "match": { "text": "needle", "subject": "wanted" } });
    assert_eq!(subject(&look(&app, &cheap).await.expect(200)), "wanted");
}

#[tokio::test(flavor = "multi_thread")]
async fn looks_at_the_newest_messages_first_without_a_start() {
    let app = App::start().await;
    app.deliver(ADDRESS, "old", "the needle").await;
    app.deliver(ADDRESS, "other", "nothing").await;
    rows::copy_newest_message(&app.pool, ADDRESS, READ - 2).await;
    let wanted = json!({ "match": { "text": "needle" } });
    assert_eq!(subject(&look(&app, &wanted).await.expect(200)), "old");
    app.deliver(ADDRESS, "other", "nothing").await;
    let none = look(&app, &wanted).await;
    assert_eq!(none.status, 204);
    app.deliver(ADDRESS, "new", "the needle").await;
    let next = json!({ "since": none.header("x-next-since"), "match": { "text": "needle" } });
    assert_eq!(subject(&look(&app, &next).await.expect(200)), "new");
}
