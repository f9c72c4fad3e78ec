//! `POST /pro/api/session`

use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::clock::Clock as _;
use tempmail_model::token::{PlainToken, TokenKind};
use tempmail_tests::http::split_by_rate_limit;
use tempmail_tests::rows;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Response};

use crate::pro_api::pro;

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
async fn expires_a_session_after_12_hours() {
    let app = App::start().await;
    let session = session(&app).await;
    // The clock also runs during the test: some minutes on either side.
    app.clock.advance(SignedDuration::from_secs(12 * 3600 - 300));
    assert_eq!(list_accounts(&app, &session).await.status, 200);
    app.clock.advance(SignedDuration::from_secs(600));
    list_accounts(&app, &session).await.assert_api_error(440, "session_expired");
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
async fn rejects_a_session_of_an_expired_token_or_suspended_tenant() {
    let app = App::start().await;
    let session = session(&app).await;
    rows::suspend_tenant(&app.pool, app.tenant.id).await;
    list_accounts(&app, &session).await.assert_api_error(403, "account_disabled");
    rows::expire_token(&app.pool, &app.tenant.pro, app.clock.now()).await;
    list_accounts(&app, &session).await.assert_api_error(440, "session_expired");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_session_on_other_surfaces() {
    let app = App::start().await;
    let session = session(&app).await;
    let account = app.create_mailbox(Some(&session), "name@inbox.localhost", "pass123").await;
    account.assert_api_error(401, "invalid_token");
    for path in ["/api/messages", "/api/me"] {
        let answer = app.request(Method::GET, path).bearer(&session).send().await;
        answer.assert_api_error(401, "invalid_token");
    }
    for path in ["/v1/tokens", "/v1/inbox/a@inbox.localhost"] {
        app.get_as(&session, path).await.assert_v1_error(401, "invalid_token");
        let bearer = app.request(Method::GET, path).bearer(&session).send().await;
        bearer.assert_v1_error(401, "authentication_required");
    }
    exchange(&app, &session).await.assert_api_error(401, "invalid_token");
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
    for token in ["", "x", unknown.expose(), &app.tenant.live, &mailbox.jwt, &revoked] {
        exchange(&app, token).await.assert_api_error(401, "invalid_token");
    }
    let expired = app.token(&app.tenant, TokenKind::Pro).await;
    rows::expire_token(&app.pool, &expired, app.clock.now()).await;
    exchange(&app, &expired).await.assert_api_error(440, "session_expired");
    rows::suspend_tenant(&app.pool, app.tenant.id).await;
    exchange(&app, &app.tenant.pro).await.assert_api_error(403, "account_disabled");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_malformed_body_and_names_the_field() {
    let app = App::start().await;
    crate::pro_api::assert_rejects_bad_bodies(&app, Method::POST, PATH).await;
    for body in [json!({}), json!({ "token": null }), json!({ "token": ["x"] })] {
        let answer = app.request(Method::POST, PATH).json(&body).send().await;
        answer.assert_api_error(400, "invalid_request");
        assert!(answer.json()["message"].as_str().unwrap().contains("token"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn takes_the_token_from_the_body_alone() {
    let app = App::start().await;
    let request = app.request(Method::POST, PATH).bearer(&app.tenant.pro);
    let answer = request.json(&json!({})).send().await;
    answer.assert_api_error(400, "invalid_request");
    let document = tempmail_api_server::openapi_document();
    let body = &document["paths"][PATH]["post"]["requestBody"]["content"]["application/json"]["schema"];
    assert_eq!(body["required"], json!(["token"]), "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_exchanges_per_client() {
    let app = App::builder()
        .config(|config| {
            config.http.unlimited_networks.clear();
            config.limits.api_per_second = 1;
        })
        .start()
        .await;
    let body: Value = json!({ "token": "tm_pro_guess" });
    let requests = (0..60).map(|_| app.request(Method::POST, PATH).json(&body).send());
    let answers = futures_util::future::join_all(requests).await;
    split_by_rate_limit(&answers);
}
