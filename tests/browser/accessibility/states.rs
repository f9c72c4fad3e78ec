//! What one sees while something loads, where something fails, and what is shown once.

use reqwest::Method;
use serde_json::json;
use tempmail_tests::browser::{button, containing, css, dialog, heading, searchbox, textbox};
use tempmail_tests::postgres::PostgresProxy;
use tempmail_tests::receiver::Reaction;
use tempmail_tests::{App, Receiver, rows};

use super::{assert_accessible, audited_browser};
use crate::dashboard::open_section;
use crate::mail::with_html;
use crate::{deliver_as_is, go_to, row, service, sign_in_as, sign_in_to, take_address, wait_until_live};

/// Longer than a test takes.
const NEVER: u32 = 600_000;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_loading() {
    let (app, browser) = (service().await, audited_browser().await);
    let mailbox = app.mailbox(None, "boat@inbox.localhost").await;
    app.deliver(&mailbox.address, "Slow", "").await;
    sign_in_to(&browser, &app, &mailbox).await;
    browser.wait_for(row("Slow")).await;
    assert_accessible(&browser, "an inbox, before axe-core has no network").await;
    let slow = json!({"offline": false, "latency": NEVER, "downloadThroughput": -1, "uploadThroughput": -1});
    browser.cdp("Network.emulateNetworkConditions", slow).await;
    browser.click(row("Slow")).await;
    browser.wait_for(css(".reader .skeleton")).await;
    assert_accessible(&browser, "a message that is loading").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_service_without_its_database_shows() {
    let proxy = PostgresProxy::start().await;
    let app = App::builder().postgres_through(proxy.port()).browsable().start().await;
    let browser = audited_browser().await;
    let mailbox = app.mailbox(None, "boat@inbox.localhost").await;
    sign_in_to(&browser, &app, &mailbox).await;
    sign_in_as(&browser, &app, &app.tenant.pro).await;
    proxy.cut();
    go_to(&browser, "#/usage").await;
    browser.wait_for(containing(".section .problem", "The service is busy or restarting.")).await;
    assert_accessible(&browser, "a section that could not be read").await;
    browser.open(&app.url("/")).await;
    browser.wait_for(containing(".list-status .problem", "The service is busy or restarting.")).await;
    assert_accessible(&browser, "a list that could not be read").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_for_now() {
    let limited = App::builder().browsable().config(|config| {
        config.http.unlimited_networks.clear();
        config.limits.free_mailboxes_per_hour = 1;
    });
    let (app, browser) = (limited.start().await, audited_browser().await);
    take_address(&browser, &app).await;
    browser.click(button("New address")).await;
    browser.click(button("Get a random address")).await;
    browser.wait_for(containing("dialog .button-large[aria-disabled=true]", "Again in")).await;
    assert_accessible(&browser, "a button that counts down").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_mail_or_not_found() {
    let (app, browser) = (service().await, audited_browser().await);
    let mailbox = app.mailbox(Some(&app.tenant.pro), "boat@inbox.localhost").await;
    let html = "<p><a href=\"https://evil.example\">https://b\u{e4}nk.example</a></p>";
    let mail = with_html("=?utf-8?Q?In=E2=80=8Bvoice?=", html);
    deliver_as_is(&app, &mailbox.address, &mail).await;
    sign_in_to(&browser, &app, &mailbox).await;
    browser.click(row("ZWSP")).await;
    browser.wait_for_text("The subject or the sender has hidden characters.").await;
    browser.wait_for(containing(".links .caution", "says another host")).await;
    assert_accessible(&browser, "a mail that deceives").await;
    go_to(&browser, "#/message/01a1fe77-43a7-7d37-809c-543308f40d09").await;
    browser.wait_for(css(".reader-problem .empty")).await;
    assert_accessible(&browser, "a message that is gone").await;
    go_to(&browser, "#/").await;
    browser.fill(searchbox("Search in loaded mail"), "rudder").await;
    browser.wait_for_text("Nothing found").await;
    assert_accessible(&browser, "a search without a result").await;
    let path = format!("/pro/api/accounts/{}/reset-password", mailbox.id);
    let reset = app.request(Method::PUT, &path).bearer(&app.tenant.pro);
    assert_eq!(reset.json(&json!({ "password": "battery staple" })).send().await.status, 200);
    browser.wait_for_text("This mailbox is signed out.").await;
    assert_accessible(&browser, "a mailbox that is signed out").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn how_a_session_does_not_begin_and_how_it_ends() {
    let (app, browser) = (service().await, audited_browser().await);
    browser.open(&app.url("/dashboard#/sign-in/none")).await;
    browser.wait_for_text("The sign-in link did not work").await;
    assert_accessible(&browser, "a link that does not work").await;
    sign_in_as(&browser, &app, &app.tenant.pro).await;
    browser.click(button("Sign out")).await;
    browser.wait_for_text("You are signed out.").await;
    assert_accessible(&browser, "after signing out").await;
    sign_in_as(&browser, &app, &app.tenant.pro).await;
    rows::suspend_tenant(&app.pool, app.tenant.id).await;
    browser.reload().await;
    browser.wait_for_text("This account is suspended.").await;
    assert_accessible(&browser, "a tenant that is suspended").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_shown_once() {
    let (app, browser) = (service().await, audited_browser().await);
    app.mailbox(Some(&app.tenant.pro), "quay@inbox.localhost").await;
    sign_in_as(&browser, &app, &app.tenant.pro).await;
    open_section(&browser, "Tokens").await;
    browser.click(button("New token")).await;
    browser.fill(textbox("Name"), "robot").await;
    browser.click(button("New token")).await;
    browser.wait_for(dialog("The token was created.")).await;
    assert_accessible(&browser, "a token").await;
    browser.click(button("I have stored it")).await;
    open_section(&browser, "Mailboxes").await;
    browser.click(button("Reset the password of quay@inbox.localhost")).await;
    browser.wait_for(textbox("Password (optional)")).await;
    assert_accessible(&browser, "another password").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_that_succeeded_and_failed() {
    let app = App::builder().receivers().browsable().start().await;
    let (receiver, browser) = (Receiver::start().await, audited_browser().await);
    receiver.react_next_with([Reaction::Status(204), Reaction::Status(500)]);
    app.mailbox(Some(&app.tenant.pro), "quay@inbox.localhost").await;
    let body = json!({ "url": receiver.url(), "events": ["email.received"] });
    let request = app.request(Method::POST, "/pro/api/webhooks").bearer(&app.tenant.pro);
    assert_eq!(request.json(&body).send().await.status, 201);
    for (number, subject) in [(1, "One"), (2, "Two")] {
        app.deliver("quay@inbox.localhost", subject, "").await;
        receiver.wait_for_requests(number).await;
    }
    sign_in_as(&browser, &app, &app.tenant.pro).await;
    wait_until_live(&browser).await;
    open_section(&browser, "Webhooks").await;
    browser.wait_for(heading("Deliveries of the last 7 days")).await;
    browser.wait_for(css(".chart .bar-delivered")).await;
    browser.wait_for(css(".chart .bar-failed")).await;
    assert_accessible(&browser, "deliveries").await;
}
