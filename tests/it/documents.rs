//! The HTML of a message as a document of its own: once, for a minute, for its session, and harmless.

mod content;
mod processes;
mod session;

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::app::Mailbox;
use tempmail_tests::{App, Response, send_mail};

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
