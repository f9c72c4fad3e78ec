//! Desktop notifications, for who turns them on.

use serde_json::{Value, json};
use tempmail_tests::browser::{button, containing};
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Browser};

use crate::{row, service, take_address, wait_until_live};

/// There is no desktop to look at: what the page notifies of is kept in `notified`. The permission is the browser's.
const RECORD: &str = "
    window.notified = [];
    const Real = window.Notification;
    window.Notification = class extends EventTarget {
      static get permission() { return Real.permission; }
      static requestPermission() { return Real.requestPermission(); }
      constructor(title, options) {
        super();
        notified.push({ title, body: options.body, notification: this });
      }
      close() {}
    };";

async fn notified(browser: &Browser) -> Vec<Value> {
    let script = "return notified.map(({ title, body }) => ({ title, body }))";
    browser.evaluate(script, vec![]).await.as_array().unwrap().clone()
}

/// Delivers a mail to the page; returns once it shows it and has said so, which is when it would also have notified of it.
async fn deliver_until_said(app: &App, browser: &Browser, address: &str, subject: &str) {
    app.deliver(address, subject, "").await;
    browser.wait_for(row(subject)).await;
    browser.wait_for(containing("[role=status]", &format!(": {subject}"))).await;
}

/// Puts the page into the background, or back, as far as it can tell.
async fn set_hidden(browser: &Browser, is_hidden: bool) {
    let script = "Object.defineProperty(document, 'hidden', { configurable: true, get: () => arguments[0] })";
    let script = script.replace("arguments[0]", if is_hidden { "true" } else { "false" });
    browser.evaluate(&script, vec![]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn notify_of_mail_while_the_page_is_in_the_background() {
    let (app, browser) = (service().await, Browser::start().await);
    let grant = json!({"permissions": ["notifications"], "origin": app.url("")});
    browser.cdp("Browser.grantPermissions", grant).await;
    let address = take_address(&browser, &app).await;
    wait_until_live(&browser).await;
    browser.evaluate(RECORD, vec![]).await;
    set_hidden(&browser, true).await;
    deliver_until_said(&app, &browser, &address, "Not asked for").await;
    set_hidden(&browser, false).await;
    browser.click(button("Desktop notifications")).await;
    browser.wait_for_text("Desktop notifications are on.").await;
    deliver_until_said(&app, &browser, &address, "In sight").await;

    set_hidden(&browser, true).await;
    app.deliver(&address, "Out of sight", "").await;
    let shown = eventually("there is a notification", || async {
        Some(notified(&browser).await).filter(|shown| !shown.is_empty())
    })
    .await;
    assert_eq!(shown, [json!({"title": "Out of sight", "body": shown[0]["body"]})]);
    let body = shown[0]["body"].as_str().unwrap();
    assert!(body.contains("ada@client.example") || body.contains("Ada"), "{body}");
    assert!(body.ends_with(&address), "{body}");

    set_hidden(&browser, false).await;
    browser.evaluate("notified[0].notification.dispatchEvent(new Event('click'))", vec![]).await;
    browser.wait_for(containing(".reader-subject", "Out of sight")).await;
    browser.click(button("Desktop notifications")).await;
    browser.wait_for_text("Desktop notifications are off.").await;
    set_hidden(&browser, true).await;
    deliver_until_said(&app, &browser, &address, "Not any more").await;
    assert_eq!(notified(&browser).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn say_that_the_browser_blocks_them() {
    let (app, browser) = (service().await, Browser::start().await);
    let deny = json!({"permission": {"name": "notifications"}, "setting": "denied", "origin": app.url("")});
    browser.cdp("Browser.setPermission", deny).await;
    take_address(&browser, &app).await;
    browser.click(button("Desktop notifications")).await;
    browser.wait_for_text("The browser blocks notifications of this page.").await;
}
