//! Credentials of `/v1`.

use jiff::SignedDuration;
use reqwest::Method;
use tempmail_model::clock::Clock as _;
use tempmail_model::token::{PlainToken, TokenKind};
use tempmail_tests::App;
use tempmail_tests::rows;

const PATH: &str = "/v1/inbox/ship@inbox.localhost";

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_missing_credential() {
    let app = App::start().await;
    let email = format!("/v1/email/{}", tempmail_model::id::new_id(jiff::Timestamp::UNIX_EPOCH));
    for (method, path) in [
        (Method::GET, PATH.to_owned()),
        (Method::DELETE, PATH.to_owned()),
        (Method::GET, email.clone()),
        (Method::GET, format!("{email}/raw")),
        (Method::GET, format!("{email}/attachments/0")),
        (Method::DELETE, email),
    ] {
        let answer = app.request(method, &path).send().await;
        answer.assert_v1_error(401, "authentication_required");
        assert!(!answer.header("www-authenticate").is_empty(), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_malformed_unknown_revoked_and_wrong_kind_tokens() {
    let app = App::start().await;
    let revoked = app.token(&app.tenant, TokenKind::Live).await;
    rows::revoke_token(&app.pool, &revoked, app.clock.now()).await;
    let mailbox = app.mailbox(None, "free@inbox.localhost").await;
    let unknown = PlainToken::generate(TokenKind::Live).unwrap();
    for token in [
        "x",
        "tm_live_",
        "tm_live_00",
        unknown.expose(),
        revoked.as_str(),
        app.tenant.pro.as_str(),
        mailbox.jwt.as_str(),
        &app.tenant.live.to_uppercase(),
        &format!("{}0", app.tenant.live),
    ] {
        let answer = app.get_as(token, PATH).await;
        answer.assert_v1_error(401, "invalid_token");
        assert!(!answer.header("www-authenticate").is_empty());
    }
    // A live token as Bearer is no credential of this surface.
    let bearer = app.request(Method::GET, PATH).bearer(&app.tenant.live).send().await;
    bearer.assert_v1_error(401, "authentication_required");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_an_expired_token_with_440() {
    let app = App::start().await;
    let token = app.token(&app.tenant, TokenKind::Live).await;
    rows::expire_token(&app.pool, &token, app.clock.now() + SignedDuration::from_hours(1)).await;
    app.deliver("ship@inbox.localhost", "there", "").await;
    assert_eq!(app.get_as(&token, PATH).await.status, 200);
    app.advance_hours(2);
    app.get_as(&token, PATH).await.assert_v1_error(440, "session_expired");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_token_of_a_suspended_tenant() {
    let app = App::start().await;
    let suspended = app.another_tenant("suspended").await;
    rows::suspend_tenant(&app.pool, suspended.id).await;
    app.get_as(&suspended.live, PATH).await.assert_v1_error(403, "account_disabled");
}
