//! Open sockets end when the right to read ends: at the latest 5 s after it, and with what it was.

use std::time::Duration;

use jiff::SignedDuration;
use reqwest::Method;
use serde_json::json;
use tempmail_tests::app::Mailbox;
use tempmail_tests::{App, WebSocket};
use tokio::time::timeout;

use super::{has_nothing_more, watch};

/// How long a right may outlive what it rested on.
const AT_MOST: Duration = Duration::from_secs(5);

/// A socket that is to end, and one beside it that is not.
struct Watched {
    app: App,
    mailbox: Mailbox,
    socket: WebSocket,
    other: Mailbox,
    others: WebSocket,
}

impl Watched {
    /// A mailbox of the tenant, and another tenant's.
    async fn at(address: &str, app: App) -> Self {
        let acme = app.another_tenant("acme").await;
        let mailbox = app.mailbox(Some(&app.tenant.pro), address).await;
        let other = app.mailbox(Some(&acme.pro), "other@inbox.localhost").await;
        let (socket, others) = (watch(&app, &mailbox).await, watch(&app, &other).await);
        Self { app, mailbox, socket, other, others }
    }

    async fn start() -> Self {
        Self::at("ends@inbox.localhost", App::start().await).await
    }

    async fn ends_with(mut self, code: &str) {
        let ended = timeout(AT_MOST, self.socket.is_refused(code));
        ended.await.expect("the right ends within 5 s");
        has_nothing_more(&self.app, &self.other, &mut self.others).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_reset_ends_it() {
    let watched = Watched::start().await;
    let path = format!("/pro/api/accounts/{}/reset-password", watched.mailbox.id);
    let request = watched.app.request(Method::PUT, &path).bearer(&watched.app.tenant.pro);
    request.json(&json!({ "password": "another horse" })).send().await.expect(200);
    watched.ends_with("invalid_token").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_the_mailbox_ends_it() {
    let watched = Watched::start().await;
    let request = watched.app.request(Method::DELETE, "/api/me").bearer(&watched.mailbox.jwt);
    request.send().await.expect(204);
    watched.ends_with("invalid_token").await;

    let watched = Watched::start().await;
    let path = format!("/pro/api/accounts/{}", watched.mailbox.id);
    watched.app.request(Method::DELETE, &path).bearer(&watched.app.tenant.pro).send().await.expect(204);
    watched.ends_with("invalid_token").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspension_of_the_tenant_ends_it() {
    let watched = Watched::start().await;
    watched.app.tempmail("tenant suspend harbour").await.success();
    watched.ends_with("account_disabled").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_of_the_tenant_ends_it() {
    let watched = Watched::start().await;
    watched.app.tempmail("tenant delete harbour --yes").await.success();
    watched.ends_with("invalid_token").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn losing_the_domain_ends_it() {
    let app = App::start().await;
    let domain = app.custom_domain(&app.tenant, "ships.example").await;
    let watched = Watched::at("captain@ships.example", app).await;
    watched.app.end_verification(domain).await;
    watched.ends_with("invalid_token").await;

    let app = App::start().await;
    let domain = app.custom_domain(&app.tenant, "ships.example").await;
    let watched = Watched::at("captain@ships.example", app).await;
    watched.app.delete_domain(&watched.app.tenant, &domain.to_string()).await.expect(204);
    watched.ends_with("invalid_token").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_jwts_time_ends_it() {
    let app = App::start().await;
    let mailbox = app.mailbox(None, "week@inbox.localhost").await;
    let mut socket = watch(&app, &mailbox).await;
    app.clock.advance(SignedDuration::from_hours(7 * 24) - SignedDuration::from_mins(1));
    has_nothing_more(&app, &mailbox, &mut socket).await;
    app.clock.advance(SignedDuration::from_mins(1));
    timeout(AT_MOST, socket.is_refused("invalid_token")).await.expect("the right ends within 5 s");
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_that_comes_after_the_end_is_not_pushed() {
    let app = App::start().await;
    let domain = app.custom_domain(&app.tenant, "ships.example").await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "captain@ships.example").await;
    let mut socket = watch(&app, &mailbox).await;
    // In one go with the end: nobody was told of it yet.
    app.end_verification(domain).await;
    let mail = tempmail_tests::smtp::message("a@client.example", "too late", "");
    let reply = tempmail_tests::send_mail(app.smtp(), "a@client.example", &mailbox.address, &mail).await;
    assert_ne!(reply.code, 250);
    timeout(AT_MOST, socket.is_refused("invalid_token")).await.expect("the right ends within 5 s");
}
