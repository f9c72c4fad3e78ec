//! Who may call `/v1`, and what everybody else is told.

use reqwest::Method;
use tempmail_model::token::{PlainToken, TokenHash, TokenKind};
use tempmail_tests::App;

const PATH: &str = "/v1/inbox/ship@inbox.localhost";

#[tokio::test(flavor = "multi_thread")]
async fn no_credential_is_authentication_required() {
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
        answer.is_v1_error(401, "authentication_required");
        assert!(!answer.header("www-authenticate").is_empty(), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_unknown_revoked_or_wrong_kind_token_is_invalid_token() {
    let app = App::start().await;
    let revoked = app.token(&app.tenant, TokenKind::Live).await;
    set_token(&app, &revoked, "UPDATE api_token SET revoked_at = created_at WHERE hash = $1").await;
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
        answer.is_v1_error(401, "invalid_token");
        assert!(!answer.header("www-authenticate").is_empty());
    }
    // A live token as Bearer is no credential of this surface.
    let bearer = app.request(Method::GET, PATH).bearer(&app.tenant.live).send().await;
    bearer.is_v1_error(401, "authentication_required");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_past_its_time_is_session_expired() {
    let app = App::start().await;
    let token = app.token(&app.tenant, TokenKind::Live).await;
    set_token(
        &app,
        &token,
        "UPDATE api_token SET expires_at = created_at + interval '1 hour' WHERE hash = $1",
    )
    .await;
    app.deliver("ship@inbox.localhost", "there", "").await;
    assert_eq!(app.get_as(&token, PATH).await.status, 200);
    app.advance_hours(2);
    app.get_as(&token, PATH).await.is_v1_error(440, "session_expired");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_tenant_is_account_disabled() {
    let app = App::start().await;
    let suspended = app.another_tenant("suspended").await;
    sqlx::query("UPDATE tenant SET suspended = true WHERE id = $1")
        .bind(suspended.id)
        .execute(&app.pool)
        .await
        .unwrap();
    app.get_as(&suspended.live, PATH).await.is_v1_error(403, "account_disabled");
}

/// Changes the row of a token.
async fn set_token(app: &App, token: &str, statement: &'static str) {
    let hash = TokenHash::from_presented(TokenKind::Live, token).unwrap();
    let changed = sqlx::query(statement).bind(hash.as_bytes().as_slice()).execute(&app.pool).await.unwrap();
    assert_eq!(changed.rows_affected(), 1);
}
