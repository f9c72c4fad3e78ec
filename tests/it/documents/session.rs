//! Who may open a document, how often, and until when.

use jiff::SignedDuration;
use reqwest::Method;
use serde_json::json;
use tempmail_model::clock::Clock as _;
use tempmail_model::token::TokenKind;
use tempmail_tests::app::Mailbox;
use tempmail_tests::{App, Response, rows};

use super::{create, created, deliver, open, url};

async fn mailbox_with_html(app: &App) -> (Mailbox, String) {
    let mailbox = app.mailbox(Some(&app.tenant.pro), "boat@inbox.localhost").await;
    let message = deliver(app, &mailbox, "<p>for the owner alone</p>").await;
    (mailbox, message)
}

#[tokio::test(flavor = "multi_thread")]
async fn opens_once() {
    let app = App::start().await;
    let (mailbox, message) = mailbox_with_html(&app).await;
    let document = created(&app, &mailbox, &message, false).await;
    let opened = futures_util::future::join_all((0..8).map(|_| open(&app, url(&document)))).await;
    assert_eq!(opened.iter().filter(|answer| answer.status == 200).count(), 1);
    for answer in opened.iter().filter(|answer| answer.status != 200) {
        answer.assert_api_error(404, "not_found");
    }
    let other = created(&app, &mailbox, &message, false).await;
    assert_ne!(url(&other), url(&document));
    assert_eq!(open(&app, url(&other)).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn expires_after_a_minute() {
    let app = App::start().await;
    let (mailbox, message) = mailbox_with_html(&app).await;
    let early = created(&app, &mailbox, &message, false).await;
    let late = created(&app, &mailbox, &message, false).await;
    app.clock.advance(SignedDuration::from_secs(40));
    assert_eq!(open(&app, url(&early)).await.status, 200);
    app.clock.advance(SignedDuration::from_secs(30));
    open(&app, url(&late)).await.assert_api_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn is_refused_once_its_message_is_deleted() {
    let app = App::start().await;
    let (mailbox, message) = mailbox_with_html(&app).await;
    let document = created(&app, &mailbox, &message, false).await;
    let path = format!("/api/messages/{message}");
    assert_eq!(app.request(Method::DELETE, &path).bearer(&mailbox.jwt).send().await.status, 204);
    open(&app, url(&document)).await.assert_api_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn is_refused_once_the_jwt_is_not_accepted_any_more() {
    let app = App::start().await;
    let (mailbox, message) = mailbox_with_html(&app).await;
    let before_reset = created(&app, &mailbox, &message, false).await;
    rows::advance_password_epoch(&app.pool, mailbox.id).await;
    open(&app, url(&before_reset)).await.assert_api_error(404, "not_found");

    let other = app.mailbox(Some(&app.tenant.pro), "ship@inbox.localhost").await;
    let message = deliver(&app, &other, "<p>x</p>").await;
    let before_suspension = created(&app, &other, &message, false).await;
    rows::suspend_tenant(&app.pool, app.tenant.id).await;
    open(&app, url(&before_suspension)).await.assert_api_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn is_made_of_own_messages_only() {
    let app = App::start().await;
    let (_, message) = mailbox_with_html(&app).await;
    let other = app.another_tenant("lighthouse").await;
    let lamp = app.mailbox(Some(&other.pro), "lamp@inbox.localhost").await;
    create(&app, "/api", &lamp.jwt, &message, false).await.assert_api_error(404, "not_found");
    create(&app, "/pro/api", &other.pro, &message, false).await.assert_api_error(404, "not_found");
}

/// A new Pro session of a token.
async fn session(app: &App, pro: &str) -> String {
    let request = app.request(Method::POST, "/pro/api/session").json(&json!({ "token": pro }));
    request.send().await.expect(200)["token"].as_str().unwrap().to_owned()
}

async fn open_as(app: &App, bearer: &str, url: &str) -> Response {
    app.request(Method::GET, url).bearer(bearer).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn opens_for_the_session_that_made_it_alone() {
    let app = App::start().await;
    let (mailbox, message) = mailbox_with_html(&app).await;
    let (own, sibling) = (session(&app, &app.tenant.pro).await, session(&app, &app.tenant.pro).await);
    let other = app.another_tenant("lighthouse").await;
    let made = create(&app, "/pro/api", &own, &message, false).await.expect(201);
    assert!(url(&made).starts_with("/pro/api/document/"));
    for stranger in [&sibling, &app.tenant.pro, &other.pro, &session(&app, &other.pro).await] {
        open_as(&app, stranger, url(&made)).await.assert_api_error(404, "not_found");
    }
    open(&app, url(&made)).await.assert_api_error(401, "authentication_required");
    let as_mailbox = url(&made).replace("/pro/api/", "/");
    open(&app, &as_mailbox).await.assert_api_error(404, "not_found");
    let document = open_as(&app, &own, url(&made)).await;
    assert_eq!(document.status, 200);
    assert!(document.text().contains("for the owner alone"));
    open_as(&app, &own, url(&made)).await.assert_api_error(404, "not_found");

    // A document of a mailbox is none of its tenant.
    let of_mailbox = created(&app, &mailbox, &message, false).await;
    let as_tenant = format!("/pro/api{}", url(&of_mailbox));
    open_as(&app, &own, &as_tenant).await.assert_api_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn is_refused_once_the_session_or_its_token_ended() {
    let app = App::start().await;
    let (_, message) = mailbox_with_html(&app).await;
    let ended = session(&app, &app.tenant.pro).await;
    let made = create(&app, "/pro/api", &ended, &message, false).await.expect(201);
    assert_eq!(app.request(Method::DELETE, "/pro/api/session").bearer(&ended).send().await.status, 204);
    open_as(&app, &ended, url(&made)).await.assert_api_error(440, "session_expired");

    let token = app.token(&app.tenant, TokenKind::Pro).await;
    let made = create(&app, "/pro/api", &token, &message, false).await.expect(201);
    let session = session(&app, &token).await;
    assert_eq!(
        open_as(&app, &session, url(&made)).await.status,
        200,
        "what a token made is for its sessions"
    );
    let made = create(&app, "/pro/api", &token, &message, false).await.expect(201);
    rows::revoke_token(&app.pool, &token, app.clock.now()).await;
    open_as(&app, &token, url(&made)).await.assert_api_error(401, "invalid_token");
}
