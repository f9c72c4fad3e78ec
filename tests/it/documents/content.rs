//! What a document shows, and what it says of the mail.

use reqwest::Method;
use serde_json::json;
use tempmail_tests::App;
use tempmail_tests::postgres::PostgresProxy;

use super::{create, created, deliver, open, url};

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
