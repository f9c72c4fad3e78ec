//! `DELETE /pro/api/session`, and `GET`

use jiff::SignedDuration;
use reqwest::Method;
use serde_json::json;
use tempmail_tests::{App, EventStream};

const PATH: &str = "/pro/api/session";

async fn session(app: &App) -> String {
    let body = json!({ "token": app.tenant.pro });
    let answer = app.request(Method::POST, PATH).json(&body).send().await.expect(200);
    answer["token"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_the_session_that_is_presented_and_no_other() {
    let app = App::start().await;
    let (own, other) = (session(&app).await, session(&app).await);
    let answer = app.request(Method::DELETE, PATH).bearer(&own).send().await;
    assert_eq!(answer.status, 204);
    let removed = "tempmail=; Path=/pro/api; HttpOnly; SameSite=Strict; Max-Age=0";
    assert_eq!(answer.header("set-cookie"), removed);
    let get = |bearer: String| app.request(Method::GET, PATH).bearer(&bearer).send();
    get(own.clone()).await.assert_api_error(440, "session_expired");
    assert_eq!(get(other).await.status, 200);
    assert_eq!(get(app.tenant.pro.clone()).await.status, 200, "its token is valid");
    let again = app.request(Method::DELETE, PATH).bearer(&own).send().await;
    again.assert_api_error(440, "session_expired");
    let audited = "SELECT count(*) FROM audit WHERE kind = 'session' AND action = 'revoked'";
    assert_eq!(app.count(audited).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn leaves_a_token_that_is_presented_itself_valid() {
    let app = App::start().await;
    let end = || app.request(Method::DELETE, PATH).bearer(&app.tenant.pro).send();
    assert_eq!((end().await.status, end().await.status), (204, 204));
    let shown = app.request(Method::GET, PATH).bearer(&app.tenant.pro).send().await.expect(200);
    let expected = json!({ "tenant": app.tenant.id.to_string(), "name": "harbour", "expires_at": null });
    assert_eq!(shown, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn closes_the_streams_of_the_session_and_those_of_no_other() {
    let app = App::start().await;
    let (own, other) = (session(&app).await, session(&app).await);
    let open = |bearer: &str| app.request(Method::GET, "/pro/api/messages/events").bearer(bearer);
    let (closing, mut staying) = (EventStream::open(open(&own)).await, EventStream::open(open(&other)).await);
    assert_eq!(app.request(Method::DELETE, PATH).bearer(&own).send().await.status, 204);
    assert!(closing.ended().await.is_complete);
    let mailbox = app.mailbox(Some(&app.tenant.pro), "boat@inbox.localhost").await;
    app.deliver(&mailbox.address, "still here", "").await;
    assert!(staying.next().await.data.contains("still here"));
}

#[tokio::test(flavor = "multi_thread")]
async fn forgets_ended_sessions_once_they_have_expired() {
    let app = App::start().await;
    let own = session(&app).await;
    app.request(Method::DELETE, PATH).bearer(&own).send().await;
    app.worker_pass().await;
    assert_eq!(app.count("SELECT count(*) FROM ended_session").await, 1);
    app.clock.advance(SignedDuration::from_hours(25));
    app.worker_pass().await;
    assert_eq!(app.count("SELECT count(*) FROM ended_session").await, 0);
}
