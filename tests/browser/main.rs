//! The web page in Chromium, as people use it. What is asked over HTTP here prepares a test, or sees what the page did.

#![expect(clippy::unwrap_used, reason = "what is not there fails the test where it is missed")]

mod accessibility;
mod dashboard;
mod hostile;
mod inbox;
mod keyboard;
mod mail;
mod measurements;
mod notifications;
mod qr_code;
mod reading;
mod restart;
mod screenshots;
mod states;
mod weight;

use serde_json::{Value, json};
use tempmail_tests::app::Mailbox;
use tempmail_tests::browser::{Target, button, containing, css, heading, textbox};
use tempmail_tests::{App, Browser, send_mail};

/// A service that a browser reaches.
async fn service() -> App {
    App::builder().browsable().start().await
}

/// A row of the list of messages, by a part of its text.
fn row(text: &str) -> Target<'_> {
    containing(".message-row", text)
}

/// Opens the inbox and takes a random address.
async fn take_address(browser: &Browser, app: &App) -> String {
    browser.open(&app.url("/")).await;
    browser.click(button("Get a random address")).await;
    shown_address(browser).await
}

/// The address of the chosen mailbox.
async fn shown_address(browser: &Browser) -> String {
    browser.wait_for(css(".card-address")).await;
    let shown = browser.evaluate("return document.querySelector('.card-address').textContent", vec![]).await;
    shown.as_str().unwrap().to_owned()
}

/// Returns once the page has its live connection.
async fn wait_until_live(browser: &Browser) {
    browser.wait_for(css(".connection-state[data-state=live]")).await;
}

/// Opens the inbox and signs in to a mailbox.
async fn sign_in_to(browser: &Browser, app: &App, mailbox: &Mailbox) {
    browser.open(&app.url("/")).await;
    browser.click(button("Sign in to an existing mailbox")).await;
    browser.fill(textbox("Address"), &mailbox.address).await;
    browser.fill(textbox("Password"), &mailbox.password).await;
    browser.click(button("Sign in")).await;
    assert_eq!(shown_address(browser).await, mailbox.address);
}

/// Opens the dashboard and signs in with a Pro token.
async fn sign_in_as(browser: &Browser, app: &App, pro: &str) {
    browser.open(&app.url("/dashboard")).await;
    browser.fill(textbox("Pro token"), pro).await;
    browser.click(button("Sign in")).await;
    browser.wait_for(heading("Everything")).await;
}

/// Opens what a fragment names, such as `#/message/<id>`.
async fn go_to(browser: &Browser, fragment: &str) {
    browser.evaluate("location.hash = arguments[0]", vec![json!(fragment)]).await;
}

/// Sends a mail as it is.
async fn deliver_as_is(app: &App, address: &str, mail: &[u8]) {
    let reply = send_mail(app.smtp(), "ada@client.example", address, mail).await;
    assert_eq!(reply.code, 250, "{reply:?}");
}

/// The id of the newest message of a mailbox.
async fn newest_id(app: &App, mailbox: &Mailbox) -> String {
    app.messages(mailbox).await[0]["id"].as_str().unwrap().to_owned()
}

/// What scripts of the page can read of what the browser keeps.
async fn kept_by_the_browser(browser: &Browser) -> Value {
    browser
        .evaluate_async(
            "(async () => ({
                local: { ...localStorage }, session: { ...sessionStorage }, cookie: document.cookie,
                databases: (await indexedDB.databases()).map(({ name }) => name), caches: await caches.keys(),
                workers: (await navigator.serviceWorker?.getRegistrations() ?? []).length,
                state: history.state, name: window.name,
            }))()",
        )
        .await
}

/// Asserts that nothing was refused by the page's policies, and that no script failed.
async fn assert_no_alarm(browser: &Browser) {
    let console = browser.console().await;
    let alarms: Vec<_> = console.iter().filter(|entry| entry.is_alarm()).collect();
    assert!(alarms.is_empty(), "{alarms:#?}");
}

/// The page as HTML, with what is not seen.
async fn html_of(browser: &Browser) -> String {
    let html = browser.evaluate("return document.documentElement.outerHTML", vec![]).await;
    html.as_str().unwrap().to_owned()
}
