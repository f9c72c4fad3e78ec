//! `/pro/api`

mod accounts;
mod domains;
mod errors;
mod limits;
mod messages;
mod session;
mod tokens;
mod usage;
mod webhooks;

use jiff::SignedDuration;
use reqwest::Method;
use serde_json::Value;
use tempmail_model::clock::Clock as _;
use tempmail_model::id::new_id;
use tempmail_model::token::{PlainToken, TokenKind};
use tempmail_tests::http::Request;
use tempmail_tests::{App, Response, rows};
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

/// Asserts that a route accepts no credential but a valid Pro token.
async fn assert_accepts_only_pro_tokens(method: Method, path: &str) {
    let app = App::start().await;
    let ask = async |credential: &str| app.request(method.clone(), path).bearer(credential).send().await;
    let bare = app.request(method.clone(), path).send().await;
    bare.assert_api_error(401, "authentication_required");
    assert!(!bare.header("www-authenticate").is_empty());

    let mailbox = app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    let unknown = PlainToken::generate(TokenKind::Pro).unwrap();
    let revoked = app.token(&app.tenant, TokenKind::Pro).await;
    rows::revoke_token(&app.pool, &revoked, app.clock.now()).await;
    for credential in ["x", unknown.expose(), &app.tenant.live, &mailbox.jwt, &revoked] {
        let answer = ask(credential).await;
        answer.assert_api_error(401, "invalid_token");
        assert!(!answer.header("www-authenticate").is_empty());
    }
    let expired = app.token(&app.tenant, TokenKind::Pro).await;
    rows::expire_token(&app.pool, &expired, app.clock.now()).await;
    ask(&expired).await.assert_api_error(440, "session_expired");
    let admitted = ask(&app.tenant.pro).await;
    assert!(![401, 440].contains(&admitted.status), "{}", admitted.text());
    rows::suspend_tenant(&app.pool, app.tenant.id).await;
    ask(&app.tenant.pro).await.assert_api_error(403, "account_disabled");
}

/// Asserts that a body that is no JSON object, too large or of another media type is rejected.
async fn assert_rejects_bad_bodies(app: &App, method: Method, path: &str) {
    let send = |media_type: &str, body: String| pro(app, method.clone(), path).body(media_type, body).send();
    for body in ["", "{", "[]", "null"] {
        send("application/json", body.to_owned()).await.assert_api_error(400, "invalid_request");
    }
    send("text/plain", "{}".to_owned()).await.assert_api_error(415, "unsupported_media_type");
    let large = format!("{{\"x\":\"{}\"}}", "x".repeat(65 * 1024));
    send("application/json", large).await.assert_api_error(413, "payload_too_large");
}

/// Unknown ids: recent, expired, of another version, and no UUID.
pub(crate) fn unknown_ids(app: &App) -> Vec<String> {
    vec![
        new_id(app.clock.now()).to_string(),
        new_id(app.clock.now() - SignedDuration::from_hours(2)).to_string(),
        Uuid::new_v4().to_string(),
        "none".to_owned(),
    ]
}

/// Asserts that each of these ids is not found, and that a client cannot distinguish the responses.
pub(crate) async fn assert_all_unknown(ids: &[String], request: impl AsyncFn(&str) -> Response) {
    let first = request(&ids[0]).await;
    assert_eq!(first.error(404), "not_found");
    for id in ids {
        assert_eq!(request(id).await.appearance(), first.appearance(), "{id}");
    }
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
