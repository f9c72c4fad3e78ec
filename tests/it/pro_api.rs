//! `/pro/api`

mod accounts;
mod domains;
mod limits;
mod messages;
mod session;
mod tokens;
mod webhooks;

use reqwest::Method;
use serde_json::Value;
use tempmail_tests::http::Request;
use tempmail_tests::{App, Response};
use uuid::Uuid;

/// A request with the tenant's Pro token.
fn pro(app: &App, method: Method, path: &str) -> Request {
    app.request(method, path).bearer(&app.tenant.pro)
}

/// The id of a resource.
pub(crate) fn id_of(object: &Value) -> Uuid {
    object["id"].as_str().expect("an id is a text").parse().expect("an id is a UUID")
}

/// Asserts the format of a time.
pub(crate) fn assert_time(value: &Value) {
    let text = value.as_str().expect("a time is a text");
    text.parse::<jiff::Timestamp>().expect("RFC 3339");
    assert!(text.len() == 24 && text.ends_with('Z'), "{text}");
}

/// Number of requests of [`concurrently`].
pub(crate) const CONCURRENCY: usize = 50;

/// Sends requests at once, and each again while the service is busy (503).
pub(crate) async fn concurrently(request: impl Fn(usize) -> Request) -> Vec<Response> {
    let attempts = (0..CONCURRENCY).map(|number| {
        let request = &request;
        async move {
            loop {
                let response = request(number).send().await;
                if response.status != 503 {
                    return response;
                }
                assert_eq!(response.error(503), "unavailable");
            }
        }
    });
    futures_util::future::join_all(attempts).await
}

/// Asserts that one of several concurrent requests created a resource, and the others were rejected with `code`.
pub(crate) fn assert_one_created(responses: &[Response], code: &str) {
    let (created, rejected): (Vec<_>, Vec<_>) = responses.iter().partition(|response| response.status == 201);
    assert_eq!(created.len(), 1, "of {}", responses.len());
    for response in rejected {
        assert_eq!(response.error(403), code);
    }
}
