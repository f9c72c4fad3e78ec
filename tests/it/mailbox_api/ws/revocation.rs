//! Sockets end when access ends. `realtime::chaos` asserts that they do so within 5 s.

use jiff::SignedDuration;
use reqwest::Method;
use serde_json::json;
use tempmail_tests::app::Mailbox;
use tempmail_tests::{App, WebSocket};

use super::{assert_nothing_unread, watch};

/// A socket that ends, and one of another tenant that stays open.
struct WebSocketFixture {
    app: App,
    mailbox: Mailbox,
    socket: WebSocket,
    other: Mailbox,
    other_socket: WebSocket,
}

impl WebSocketFixture {
    /// A mailbox of the tenant, and another tenant's.
    async fn at(address: &str, app: App) -> Self {
        let acme = app.another_tenant("acme").await;
        let mailbox = app.mailbox(Some(&app.tenant.pro), address).await;
        let other = app.mailbox(Some(&acme.pro), "other@inbox.localhost").await;
        let (socket, other_socket) = (watch(&app, &mailbox).await, watch(&app, &other).await);
        Self { app, mailbox, socket, other, other_socket }
    }

    async fn start() -> Self {
        Self::at("ends@inbox.localhost", App::start().await).await
    }

    async fn ends_with(mut self, code: &str) {
        self.socket.assert_refused(code).await;
        assert_nothing_unread(&self.app, &self.other, &mut self.other_socket).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn closes_the_socket_on_a_password_reset() {
    let fixture = WebSocketFixture::start().await;
    let path = format!("/pro/api/accounts/{}/reset-password", fixture.mailbox.id);
    let request = fixture.app.request(Method::PUT, &path).bearer(&fixture.app.tenant.pro);
    request.json(&json!({ "password": "another horse" })).send().await.expect(200);
    fixture.ends_with("invalid_token").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn closes_the_socket_when_the_mailbox_is_deleted() {
    let fixture = WebSocketFixture::start().await;
    let request = fixture.app.request(Method::DELETE, "/api/me").bearer(&fixture.mailbox.jwt);
    request.send().await.expect(204);
    fixture.ends_with("invalid_token").await;

    let fixture = WebSocketFixture::start().await;
    let path = format!("/pro/api/accounts/{}", fixture.mailbox.id);
    fixture.app.request(Method::DELETE, &path).bearer(&fixture.app.tenant.pro).send().await.expect(204);
    fixture.ends_with("invalid_token").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn closes_the_socket_when_the_tenant_is_suspended() {
    let fixture = WebSocketFixture::start().await;
    fixture.app.tempmail("tenant suspend harbour").await.success();
    fixture.ends_with("account_disabled").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn closes_the_socket_when_the_tenant_is_deleted() {
    let fixture = WebSocketFixture::start().await;
    fixture.app.tempmail("tenant delete harbour --yes").await.success();
    fixture.ends_with("invalid_token").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn closes_the_socket_when_the_domain_is_lost_or_deleted() {
    let app = App::start().await;
    let domain = app.custom_domain(&app.tenant, "ships.example").await;
    let fixture = WebSocketFixture::at("captain@ships.example", app).await;
    fixture.app.end_verification(domain).await;
    fixture.ends_with("invalid_token").await;

    let app = App::start().await;
    let domain = app.custom_domain(&app.tenant, "ships.example").await;
    let fixture = WebSocketFixture::at("captain@ships.example", app).await;
    fixture.app.delete_domain(&fixture.app.tenant, &domain.to_string()).await.expect(204);
    fixture.ends_with("invalid_token").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn closes_the_socket_when_the_jwt_expires() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "week@inbox.localhost").await;
    let mut socket = watch(&app, &mailbox).await;
    app.clock.advance(SignedDuration::from_hours(7 * 24) - SignedDuration::from_mins(1));
    assert_nothing_unread(&app, &mailbox, &mut socket).await;
    app.clock.advance(SignedDuration::from_mins(1));
    socket.assert_refused("invalid_token").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn does_not_push_mail_after_the_domain_is_lost() {
    let app = App::start().await;
    let domain = app.custom_domain(&app.tenant, "ships.example").await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "captain@ships.example").await;
    let mut socket = watch(&app, &mailbox).await;
    // At once, before the processes know of it.
    app.end_verification(domain).await;
    let mail = tempmail_tests::smtp::message("a@client.example", "too late", "");
    let reply = tempmail_tests::send_mail(app.smtp(), "a@client.example", &mailbox.address, &mail).await;
    assert_ne!(reply.code, 250);
    socket.assert_refused("invalid_token").await;
}
