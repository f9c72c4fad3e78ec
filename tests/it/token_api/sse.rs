//! `/v1/sse`: streams of server-sent events.

mod addr {
    mod get;
}
mod credential;
mod cursor;
mod ends;
mod flow;
mod places;
mod user {
    mod get;
}

use reqwest::Method;
use serde_json::Value;
use tempmail_tests::http::Request;
use tempmail_tests::sse::Event;
use tempmail_tests::{Answer, App, EventStream};

const ADDRESS: &str = "ship@inbox.localhost";
const ADDR: &str = "/v1/sse/addr?address=ship@inbox.localhost";
const USER: &str = "/v1/sse/user";

fn ask(app: &App, live: &str, path: &str) -> Request {
    app.request(Method::GET, path).live(live)
}

/// An open stream of the tenant.
async fn open(app: &App, path: &str) -> EventStream {
    EventStream::open(ask(app, &app.tenant.live, path)).await
}

/// An open stream that has told its first cursor.
async fn begun(app: &App, path: &str) -> EventStream {
    let mut stream = open(app, path).await;
    stream.block().await;
    stream
}

async fn refused(app: &App, path: &str) -> Answer {
    EventStream::refused(ask(app, &app.tenant.live, path)).await
}

/// Subject of an event, which is a message.
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

/// Asserts that nothing is on its way: a mail that is sent now is the next event.
async fn is_next(app: &App, stream: &mut EventStream, address: &str) {
    app.deliver(address, "a mail to be next", "").await;
    assert_eq!(subject(&stream.next().await), "a mail to be next");
}
