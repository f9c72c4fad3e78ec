//! `/pro/api/session`, and the link that `up` prints.

mod cookie;

use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use serde_json::json;
use tempmail_model::clock::Clock as _;
use tempmail_model::token::{PlainToken, TokenKind};
use tempmail_tests::postgres::PostgresProxy;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, EventStream, Response, rows};

use super::pro;

const PATH: &str = "/pro/api/session";

async fn exchange(app: &App, token: &str) -> Response {
    app.request(Method::POST, PATH).json(&json!({ "token": token })).send().await
}

async fn session(app: &App) -> String {
    exchange(app, &app.tenant.pro).await.expect(200)["token"].as_str().unwrap().to_owned()
}

async fn list_accounts(app: &App, session: &str) -> Response {
    app.request(Method::GET, "/pro/api/accounts").bearer(session).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_a_session_on_the_whole_pro_api() {
    let app = App::start().await;
    let before = app.clock.now();
    let answer = exchange(&app, &app.tenant.pro).await.expect(200);
    let session = answer["token"].as_str().unwrap();
    let expires_at: Timestamp = answer["expires_at"].as_str().unwrap().parse().unwrap();
    assert_eq!(answer, json!({ "token": session, "expires_at": answer["expires_at"] }));
    assert!(expires_at.duration_since(app.clock.now()) <= SignedDuration::from_hours(12));
    assert!(expires_at.duration_since(before) > SignedDuration::from_secs(12 * 3600 - 2));
    // The list of tokens has the last use, which is recorded a moment later.
    eventually("the use is recorded", || async {
        pro(&app, Method::GET, "/pro/api/tokens").send().await.expect(200);
        (app.count("SELECT count(*) FROM api_token WHERE last_used_at IS NOT NULL").await == 1).then_some(())
    })
    .await;
    for path in ["/pro/api/accounts", "/pro/api/tokens", "/pro/api/webhooks"] {
        let with = |credential: &str| app.request(Method::GET, path).bearer(credential).send();
        assert_eq!(with(session).await.expect(200), with(&app.tenant.pro).await.expect(200), "{path}");
    }
    let body = json!({ "name": "made in the dashboard" });
    let created = app.request(Method::POST, "/pro/api/tokens").bearer(session).json(&body).send().await;
    assert_eq!(created.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn revokes_a_session_with_its_token() {
    let app = App::start().await;
    let session = session(&app).await;
    let tokens = pro(&app, Method::GET, "/pro/api/tokens").send().await.expect(200);
    let tokens = tokens["tokens"].as_array().unwrap();
    let own = tokens.iter().find(|token| token["kind"] == "pro").unwrap()["id"].as_str().unwrap();
    // The session revokes its own token.
    let path = format!("/pro/api/tokens/{own}");
    assert_eq!(app.request(Method::DELETE, &path).bearer(&session).send().await.status, 204);
    list_accounts(&app, &session).await.assert_api_error(401, "invalid_token");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_an_altered_session() {
    let app = App::start().await;
    let session = session(&app).await;
    let at = session.rfind('.').unwrap() + 1;
    let other = if session[at..].starts_with('A') { "B" } else { "A" };
    let forged = format!("{}{other}{}", &session[..at], &session[at + 1..]);
    list_accounts(&app, &forged).await.assert_api_error(401, "invalid_token");
    list_accounts(&app, &session[..at]).await.assert_api_error(401, "invalid_token");
}

#[tokio::test(flavor = "multi_thread")]
async fn exchanges_only_valid_pro_tokens() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "name@inbox.localhost").await;
    let unknown = PlainToken::generate(TokenKind::Pro).unwrap();
    let revoked = app.token(&app.tenant, TokenKind::Pro).await;
    rows::revoke_token(&app.pool, &revoked, app.clock.now()).await;
    let session = session(&app).await;
    for token in ["", "x", unknown.expose(), &app.tenant.live, &mailbox.jwt, &session, &revoked] {
        exchange(&app, token).await.assert_api_error(401, "invalid_token");
    }
    let expired = app.token(&app.tenant, TokenKind::Pro).await;
    rows::expire_token(&app.pool, &expired, app.clock.now()).await;
    exchange(&app, &expired).await.assert_api_error(440, "session_expired");
    rows::suspend_tenant(&app.pool, app.tenant.id).await;
    exchange(&app, &app.tenant.pro).await.assert_api_error(403, "account_disabled");
}

#[tokio::test(flavor = "multi_thread")]
async fn takes_the_token_from_the_body_alone() {
    let app = App::start().await;
    let request = app.request(Method::POST, PATH).bearer(&app.tenant.pro);
    let answer = request.json(&json!({})).send().await;
    answer.assert_api_error(400, "invalid_request");
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

const OWN: (&str, &str) = ("origin", "http://127.0.0.1:8080");

async fn open_link(app: &App, code: &str, origin: (&str, &str)) -> Response {
    let request = app.request(Method::POST, "/pro/api/session/link").json(&json!({ "code": code }));
    request.header(origin.0, origin.1).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_signs_in_once() {
    let app = App::start().await;
    for wrong in ["", "0", &"0".repeat(64), &app.tenant.pro, &app.sign_in_code[1..]] {
        open_link(&app, wrong, OWN).await.assert_api_error(401, "invalid_token");
    }
    let answers =
        futures_util::future::join_all((0..8).map(|_| open_link(&app, &app.sign_in_code, OWN))).await;
    let (signed_in, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 204);
    assert_eq!(signed_in.len(), 1);
    for answer in refused {
        answer.assert_api_error(401, "invalid_token");
    }
    let cookie = signed_in[0].header("set-cookie").split(';').next().unwrap().to_owned();
    let request = app.request(Method::GET, "/pro/api/session").header("cookie", cookie).header(OWN.0, OWN.1);
    assert_eq!(request.send().await.expect(200)["tenant"], app.tenant.id.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_is_for_own_pages_only_and_stays_usable() {
    let app = App::start().await;
    let foreign = open_link(&app, &app.sign_in_code, ("origin", "https://evil.example")).await;
    foreign.assert_api_error(403, "origin_not_allowed");
    assert_eq!(open_link(&app, &app.sign_in_code, OWN).await.status, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_leads_nowhere_without_its_token() {
    let app = App::start().await;
    rows::revoke_token(&app.pool, &app.tenant.pro, app.clock.now()).await;
    open_link(&app, &app.sign_in_code, OWN).await.assert_api_error(401, "invalid_token");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_stays_usable_while_the_store_fails() {
    let proxy = PostgresProxy::start().await;
    let app = App::builder().postgres_through(proxy.port()).start().await;
    proxy.cut();
    assert_eq!(open_link(&app, &app.sign_in_code, OWN).await.error(503), "unavailable");

    let app = App::start().await;
    sqlx::query("ALTER SCHEMA public RENAME TO elsewhere").execute(&app.pool).await.unwrap();
    assert_eq!(open_link(&app, &app.sign_in_code, OWN).await.error(500), "internal_error");
    sqlx::query("ALTER SCHEMA elsewhere RENAME TO public").execute(&app.pool).await.unwrap();
    let signed_in = eventually("the store answers", || async {
        Some(open_link(&app, &app.sign_in_code, OWN).await).filter(|answer| answer.status < 500)
    });
    assert_eq!(signed_in.await.status, 204);
}
