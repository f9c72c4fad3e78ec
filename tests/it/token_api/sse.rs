//! `/v1/sse`: streams of server-sent events.

mod addr {
    mod get;
}
mod credential;
mod cursor;
mod interruption;
mod limits;
mod revocation;
mod user {
    mod get;
}

use reqwest::Method;
use serde_json::Value;
use tempmail_tests::http::Request;
use tempmail_tests::sse::Event;
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
