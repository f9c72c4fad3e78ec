//! The HTML of a message as a document of its own: once, for a minute, for its session, and harmless.

use jiff::SignedDuration;
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::clock::Clock as _;
use tempmail_model::token::TokenKind;
use tempmail_tests::app::Mailbox;
use tempmail_tests::postgres::PostgresProxy;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, EventStream, Fleet, RedisServer, Response, rows, send_mail};

/// A mail with this HTML, and an image that it may show as `cid:logo`.
fn mail(html: &str) -> Vec<u8> {
    format!(
        "From: a@client.example\r\nSubject: x\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/related; boundary=b\r\n\r\n--b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n{html}\r\n\
         --b\r\nContent-Type: image/png\r\nContent-ID: <logo>\r\nContent-Transfer-Encoding: base64\r\n\r\naGVsbG8=\r\n--b--\r\n"
    )
    .into_bytes()
}

/// Sends a mail with this HTML to a mailbox; returns the id of the message.
async fn deliver(app: &App, mailbox: &Mailbox, html: &str) -> String {
    let reply = send_mail(app.smtp(), "a@client.example", &mailbox.address, &mail(html)).await;
    assert_eq!(reply.code, 250, "{reply:?}");
    app.messages(mailbox).await[0]["id"].as_str().unwrap().to_owned()
}

/// Asks for a document with a Bearer credential.
async fn create(app: &App, base: &str, bearer: &str, message: &str, remote: bool) -> Response {
    let path = format!("{base}/messages/{message}/document");
    app.request(Method::POST, &path).bearer(bearer).json(&json!({ "remote": remote })).send().await
}

/// A new document of a mailbox.
async fn created(app: &App, mailbox: &Mailbox, message: &str, remote: bool) -> Value {
    create(app, "/api", &mailbox.jwt, message, remote).await.expect(201)
}

fn url(created: &Value) -> &str {
    created["url"].as_str().unwrap()
}

/// Opens a document as a frame does.
async fn open(app: &App, url: &str) -> Response {
    app.request(Method::GET, url).send().await
}

const BLOCKED: &str = "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; \
    style-src 'unsafe-inline'; img-src data:";

#[tokio::test(flavor = "multi_thread")]
async fn shows_sanitized_html_with_the_headers_of_a_sandbox() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "boat@inbox.localhost").await;
    let html = "<p style=\"color:red\">Hello</p><script>alert(1)</script><img src=\"cid:logo\" onerror=\"alert(2)\">\
        <form action=\"https://evil.example\"><input></form><meta http-equiv=\"refresh\" content=\"0;url=//evil.example\">";
    let message = deliver(&app, &mailbox, html).await;
    let created = created(&app, &mailbox, &message, false).await;
    assert!(url(&created).starts_with("/document/"));
    let document = open(&app, url(&created)).await;
    assert_eq!((document.status, document.header("content-type")), (200, "text/html; charset=utf-8"));
    for (name, value) in [
        ("content-security-policy", BLOCKED),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
        ("x-dns-prefetch-control", "off"),
        ("cache-control", "no-store"),
    ] {
        assert_eq!(document.header(name), value, "{name}");
    }
    let text = document.text();
    assert!(text.contains("<p style=\"color:red\">Hello</p>"), "{text}");
    assert!(text.contains("src=\"data:image/png;base64,aGVsbG8=\""), "{text}");
    for gone in ["script", "alert", "onerror", "<form", "<input", "refresh", "evil.example"] {
        assert!(!text.contains(gone), "{gone}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn loads_remote_images_only_where_it_was_asked_and_names_their_hosts() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "boat@inbox.localhost").await;
    let html = "<img src=\"https://track.example/p.png\"><img src=\"http://cdn.example/x\">\
        <div style=\"background:url(https://css.example/y)\">x</div>";
    let message = deliver(&app, &mailbox, html).await;
    for (remote, policy) in [(false, BLOCKED.to_owned()), (true, format!("{BLOCKED} https:"))] {
        let created = created(&app, &mailbox, &message, remote).await;
        assert_eq!(created["remote_hosts"], json!(["cdn.example", "track.example"]));
        let document = open(&app, url(&created)).await;
        assert_eq!(document.header("content-security-policy"), policy);
        assert_eq!(document.text().contains("https://track.example/p.png"), remote);
        assert_eq!(document.text().contains("https://cdn.example/x"), remote);
        assert!(!document.text().contains("css.example"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_links_with_the_host_that_they_lead_to() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "boat@inbox.localhost").await;
    let html = "<a href=\"https://\u{430}pple.com/x?a=1&amp;b=2\">apple.com</a><a href=\"javascript:alert(1)\">no</a>\
        <a href=\"https://bank.example@evil.example/\">bank</a><a href=\"mailto:a@b.example\">write</a>";
    let message = deliver(&app, &mailbox, html).await;
    let created = created(&app, &mailbox, &message, false).await;
    assert_eq!(
        created["links"],
        json!([
            {"text": "apple.com", "href": "https://xn--pple-43d.com/x?a=1&b=2", "host": "\u{430}pple.com",
             "ascii_host": "xn--pple-43d.com"},
            {"text": "bank", "href": "https://evil.example/", "host": "evil.example", "ascii_host": "evil.example"},
            {"text": "write", "href": "mailto:a@b.example", "host": null, "ascii_host": null},
        ])
    );
    assert_eq!(created["truncated"], false);
    let text = open(&app, url(&created)).await.text();
    let links = text.matches("<a ").count();
    assert_eq!(text.matches("target=\"_blank\"").count(), links);
    assert_eq!(text.matches("rel=\"noopener noreferrer nofollow\"").count(), links);
    assert!(!text.contains("javascript"));
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_hostile_mail_in_time_and_says_what_is_left_out() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "boat@inbox.localhost").await;
    for html in ["<div>\r\n".repeat(700_000), "<b x>\r\n<p>x".repeat(300_000), "x \r\n".repeat(2_000_000)] {
        let message = deliver(&app, &mailbox, &html).await;
        let created = created(&app, &mailbox, &message, false).await;
        assert_eq!(created["truncated"], true);
        assert_eq!(open(&app, url(&created)).await.status, 200);
    }
    assert_eq!(app.get_mailbox(&mailbox, "/api/me").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_no_html_for_a_mail_without_any() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "boat@inbox.localhost").await;
    app.deliver(&mailbox.address, "plain", "<p>this is text</p>").await;
    let message = app.messages(&mailbox).await[0]["id"].as_str().unwrap().to_owned();
    create(&app, "/api", &mailbox.jwt, &message, false).await.assert_api_error(409, "no_html");
    create(&app, "/pro/api", &app.tenant.pro, &message, false).await.assert_api_error(409, "no_html");
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_unavailable_while_postgres_is_down() {
    let proxy = PostgresProxy::start().await;
    let app = App::builder().postgres_through(proxy.port()).start().await;
    let mailbox = app.mailbox(None, "boat@inbox.localhost").await;
    let message = deliver(&app, &mailbox, "<p>x</p>").await;
    let document = created(&app, &mailbox, &message, false).await;
    proxy.cut();
    assert_eq!(open(&app, url(&document)).await.error(503), "unavailable");
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_internal_error_without_details_when_the_schema_is_broken() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "boat@inbox.localhost").await;
    let message = deliver(&app, &mailbox, "<p>x</p>").await;
    let document = created(&app, &mailbox, &message, false).await;
    sqlx::query("ALTER SCHEMA public RENAME TO elsewhere").execute(&app.pool).await.unwrap();
    assert_eq!(open(&app, url(&document)).await.error(500), "internal_error");
    sqlx::query("ALTER SCHEMA elsewhere RENAME TO public").execute(&app.pool).await.unwrap();
    let again = app.request(Method::GET, url(&document)).send_until_available().await;
    assert_eq!(again.status, 200, "it was not opened");
}

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

async fn open_as(app: &App, bearer: &str, url: &str) -> Response {
    app.request(Method::GET, url).bearer(bearer).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn opens_for_the_session_that_made_it_alone() {
    let app = App::start().await;
    let (mailbox, message) = mailbox_with_html(&app).await;
    let (own, sibling) = (app.session(&app.tenant.pro).await, app.session(&app.tenant.pro).await);
    let other = app.another_tenant("lighthouse").await;
    let made = create(&app, "/pro/api", &own, &message, false).await.expect(201);
    assert!(url(&made).starts_with("/pro/api/document/"));
    for stranger in [&sibling, &app.tenant.pro, &other.pro, &app.session(&other.pro).await] {
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
    let ended = app.session(&app.tenant.pro).await;
    let made = create(&app, "/pro/api", &ended, &message, false).await.expect(201);
    assert_eq!(app.request(Method::DELETE, "/pro/api/session").bearer(&ended).send().await.status, 204);
    open_as(&app, &ended, url(&made)).await.assert_api_error(440, "session_expired");

    let token = app.token(&app.tenant, TokenKind::Pro).await;
    let made = create(&app, "/pro/api", &token, &message, false).await.expect(201);
    let session = app.session(&token).await;
    assert_eq!(
        open_as(&app, &session, url(&made)).await.status,
        200,
        "what a token made is for its sessions"
    );
    let made = create(&app, "/pro/api", &token, &message, false).await.expect(201);
    rows::revoke_token(&app.pool, &token, app.clock.now()).await;
    open_as(&app, &token, url(&made)).await.assert_api_error(401, "invalid_token");
}

/// A fleet with a mail that has HTML; the JWT of its mailbox and the id of the message.
async fn with_html(fleet: &Fleet) -> (String, String) {
    let mailbox = fleet.mailbox(Some(&fleet.tenant.pro), "boat@inbox.localhost").await;
    let mail = mail("<p>x</p>");
    let reply = send_mail(fleet.smtp(0), "a@client.example", &mailbox.address, &mail).await;
    assert_eq!(reply.code, 250, "{reply:?}");
    let listed = fleet.request(0, Method::GET, "/api/messages").bearer(&mailbox.jwt).send().await.expect(200);
    (mailbox.jwt, listed["messages"][0]["id"].as_str().unwrap().to_owned())
}

async fn create_at(fleet: &Fleet, jwt: &str, message: &str) -> Value {
    let path = format!("/api/messages/{message}/document");
    fleet.request(0, Method::POST, &path).bearer(jwt).json(&json!({})).send().await.expect(201)
}

#[tokio::test(flavor = "multi_thread")]
async fn opens_once_in_all_processes_that_share_redis() {
    let redis = RedisServer::new();
    let fleet = Fleet::builder().apis(2).ingests(1).workers(0).redis(&redis.url()).start().await;
    for index in 0..2 {
        eventually("the process is connected to Redis", || async {
            (fleet.api(index).metric("tempmail_bus_degraded").await == 0.0).then_some(())
        })
        .await;
    }
    let (jwt, message) = with_html(&fleet).await;
    let made = create_at(&fleet, &jwt, &message).await;
    assert_eq!(
        fleet.request(1, Method::GET, url(&made)).send().await.status,
        200,
        "another process opens it"
    );
    let again = fleet.request(0, Method::GET, url(&made)).send().await;
    again.assert_api_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn opens_once_in_each_process_without_redis() {
    let fleet = Fleet::builder().apis(1).ingests(1).workers(0).start().await;
    let (jwt, message) = with_html(&fleet).await;
    let made = create_at(&fleet, &jwt, &message).await;
    assert_eq!(fleet.request(0, Method::GET, url(&made)).send().await.status, 200);
    fleet.request(0, Method::GET, url(&made)).send().await.assert_api_error(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_in_all_processes() {
    let fleet = Fleet::builder().apis(2).ingests(1).workers(0).start().await;
    let body = json!({ "token": fleet.tenant.pro });
    let session = fleet.request(0, Method::POST, "/pro/api/session").json(&body).send().await.expect(200);
    let session = session["token"].as_str().unwrap();
    let stream = fleet.request(1, Method::GET, "/pro/api/messages/events").bearer(session);
    let stream = EventStream::open(stream).await;
    let ended = fleet.request(0, Method::DELETE, "/pro/api/session").bearer(session).send().await;
    assert_eq!(ended.status, 204);
    let refused = fleet.request(1, Method::GET, "/pro/api/session").bearer(session).send().await;
    refused.assert_api_error(440, "session_expired");
    assert!(stream.ended().await.is_complete);
}
