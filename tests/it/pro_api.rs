//! `/pro/api`

mod accounts;
mod domains;
mod errors;
mod limits;
mod session;
mod tokens;
mod webhooks;

use jiff::SignedDuration;
use jiff_sqlx::ToSqlx as _;
use reqwest::Method;
use serde_json::Value;
use tempmail_model::clock::Clock as _;
use tempmail_model::id::new_id;
use tempmail_model::token::{PlainToken, TokenHash, TokenKind};
use tempmail_tests::http::Request;
use tempmail_tests::{Answer, App};
use uuid::Uuid;

/// A request with the tenant's Pro token.
fn pro(app: &App, method: Method, path: &str) -> Request {
    app.request(method, path).bearer(&app.tenant.pro)
}

/// An id of an answer.
pub(crate) fn id_of(object: &Value) -> Uuid {
    object["id"].as_str().expect("an id is a text").parse().expect("an id is a UUID")
}

/// Asserts a time as every surface writes it.
pub(crate) fn is_time(value: &Value) {
    let text = value.as_str().expect("a time is a text");
    text.parse::<jiff::Timestamp>().expect("RFC 3339");
    assert!(text.len() == 24 && text.ends_with('Z'), "{text}");
}

/// Asserts that a route takes Pro tokens that may act, and nothing else.
async fn is_for_pro_alone(method: Method, path: &str) {
    let app = App::start().await;
    let ask = async |credential: &str| app.request(method.clone(), path).bearer(credential).send().await;
    let bare = app.request(method.clone(), path).send().await;
    bare.is_api_error(401, "authentication_required");
    assert!(!bare.header("www-authenticate").is_empty());

    let mailbox = app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    let unknown = PlainToken::generate(TokenKind::Pro).unwrap();
    let revoked = app.token(&app.tenant, TokenKind::Pro).await;
    end_token(&app, &revoked, "UPDATE api_token SET revoked_at = $2 WHERE hash = $1").await;
    for credential in ["x", unknown.expose(), &app.tenant.live, &mailbox.jwt, &revoked] {
        let answer = ask(credential).await;
        answer.is_api_error(401, "invalid_token");
        assert!(!answer.header("www-authenticate").is_empty());
    }
    let expired = app.token(&app.tenant, TokenKind::Pro).await;
    end_token(&app, &expired, "UPDATE api_token SET expires_at = $2 WHERE hash = $1").await;
    ask(&expired).await.is_api_error(440, "session_expired");
    let admitted = ask(&app.tenant.pro).await;
    assert!(![401, 440].contains(&admitted.status), "{}", admitted.text());
    let suspend = "UPDATE tenant SET suspended = true WHERE id = $1";
    sqlx::query(suspend).bind(app.tenant.id).execute(&app.pool).await.unwrap();
    ask(&app.tenant.pro).await.is_api_error(403, "account_disabled");
}

/// Ends a token at the time of the clock.
pub(crate) async fn end_token(app: &App, token: &str, statement: &'static str) {
    let kind = if token.starts_with("tm_pro_") { TokenKind::Pro } else { TokenKind::Live };
    let hash = TokenHash::from_presented(kind, token).unwrap();
    let ended = sqlx::query(statement)
        .bind(hash.as_bytes().as_slice())
        .bind(app.clock.now().to_sqlx())
        .execute(&app.pool);
    assert_eq!(ended.await.unwrap().rows_affected(), 1);
}

/// Makes Kubernetes manage a row of a table.
pub(crate) async fn manage(app: &App, statement: &'static str, id: Uuid) {
    let managed = sqlx::query(statement).bind(id).execute(&app.pool).await.unwrap();
    assert_eq!(managed.rows_affected(), 1);
}

/// Asserts that a body that is no JSON object, too large or not said to be JSON is refused.
async fn refuses_bad_bodies(app: &App, method: Method, path: &str) {
    let send = |media_type: &str, body: String| pro(app, method.clone(), path).body(media_type, body).send();
    for body in ["", "{", "[]", "null"] {
        send("application/json", body.to_owned()).await.is_api_error(400, "invalid_request");
    }
    send("text/plain", "{}".to_owned()).await.is_api_error(415, "unsupported_media_type");
    let large = format!("{{\"x\":\"{}\"}}", "x".repeat(65 * 1024));
    send("application/json", large).await.is_api_error(413, "payload_too_large");
}

/// Ids that name nothing, with what they are.
pub(crate) fn ids_of_nothing(app: &App) -> Vec<String> {
    vec![
        new_id(app.clock.now()).to_string(),
        new_id(app.clock.now() - SignedDuration::from_hours(2)).to_string(),
        Uuid::new_v4().to_string(),
        "none".to_owned(),
    ]
}

/// Asserts that nothing of an answer tells it from another.
pub(crate) fn is_alike(answer: &Answer, other: &Answer) {
    assert_eq!(answer.appearance(), other.appearance());
}

/// Sends 200 requests at once. Where the service has no room for one (503) its client tries
/// again, as it is told to.
pub(crate) async fn two_hundred_at_once(request: impl Fn(usize) -> Request) -> Vec<Answer> {
    let attempts = (0..200).map(|number| {
        let request = &request;
        async move {
            loop {
                let answer = request(number).send().await;
                if answer.status != 503 {
                    return answer;
                }
                assert_eq!(answer.error(503), "unavailable");
            }
        }
    });
    futures_util::future::join_all(attempts).await
}
