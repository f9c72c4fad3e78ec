//! `GET /pro/api/messages/events`

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::clock::Clock as _;
use tempmail_model::token::TokenKind;
use tempmail_tests::http::Request;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, EventStream, rows};

use super::Owners;

const PATH: &str = "/pro/api/messages/events";

fn request(app: &App, pro: &str) -> Request {
    app.request(Method::GET, PATH).bearer(pro)
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_what_the_tenant_owns_as_it_arrives() {
    let owners = Owners::create().await;
    let app = &owners.app;
    let mut stream = EventStream::open(request(app, &app.tenant.pro)).await;
    for address in
        ["lamp@inbox.localhost", "any@lamp.example", "shared@inbox.localhost", "free@inbox.localhost"]
    {
        app.deliver(address, "of others", "x").await;
    }
    for (address, subject) in [("quay@inbox.localhost", "mailbox"), ("new@quay.example", "domain")] {
        app.deliver(address, subject, "x").await;
        let event = stream.next().await;
        let data: Value = serde_json::from_str(&event.data).unwrap();
        assert_eq!(
            (event.name.as_str(), &data["subject"], &data["address"]),
            ("new_email", &json!(subject), &json!(address))
        );
    }
    let cursor = stream.last_event_id().to_owned();
    drop(stream);
    app.deliver("quay@inbox.localhost", "meanwhile", "x").await;
    let resumed = request(app, &app.tenant.pro).header("last-event-id", cursor);
    assert!(EventStream::open(resumed).await.next().await.data.contains("meanwhile"));
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_to_the_cookie_of_an_own_page() {
    let app = App::start().await;
    let body = json!({ "token": app.tenant.pro, "cookie": true });
    let own = ("sec-fetch-site", "same-origin");
    let signed_in =
        app.request(Method::POST, "/pro/api/session").header(own.0, own.1).json(&body).send().await;
    let cookie = signed_in.header("set-cookie").split(';').next().unwrap().to_owned();
    let request = app.request(Method::GET, PATH).header("cookie", cookie).header(own.0, own.1);
    let mut stream = EventStream::open(request).await;
    app.mailbox(Some(&app.tenant.pro), "quay@inbox.localhost").await;
    app.deliver("quay@inbox.localhost", "live", "x").await;
    assert!(stream.next().await.data.contains("live"));
}

#[tokio::test(flavor = "multi_thread")]
async fn closes_when_the_token_is_revoked_or_the_tenant_suspended() {
    let app = App::start().await;
    let token = app.token(&app.tenant, TokenKind::Pro).await;
    let stream = EventStream::open(request(&app, &token)).await;
    rows::revoke_token(&app.pool, &token, app.clock.now()).await;
    assert!(stream.ended().await.is_complete);
    let stream = EventStream::open(request(&app, &app.tenant.pro)).await;
    rows::suspend_tenant(&app.pool, app.tenant.id).await;
    assert!(stream.ended().await.is_complete);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_an_eleventh_stream_of_a_token_and_its_sessions() {
    let app = App::start().await;
    let mut streams = Vec::new();
    for _ in 0..10 {
        streams.push(EventStream::open(request(&app, &app.tenant.pro)).await);
    }
    let busy = EventStream::refused(request(&app, &app.tenant.pro)).await;
    busy.assert_api_error(429, "token_busy");
    streams.pop();
    eventually("the place of a closed stream is free", || async {
        EventStream::try_open(request(&app, &app.tenant.pro)).await.unwrap().ok().map(drop)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_sse_unavailable_when_the_process_is_full() {
    let app = App::builder().config(|config| config.http.streams = 1).start().await;
    let held = EventStream::open(request(&app, &app.tenant.pro)).await;
    let full = EventStream::refused(request(&app, &app.tenant.pro)).await;
    full.assert_api_error(503, "sse_unavailable");
    drop(held);
}
