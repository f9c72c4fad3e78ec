//! axe-core on each page and in each of its states, in both themes, on a wide screen and on a phone.

mod states;

use reqwest::Method;
use serde_json::json;
use tempmail_tests::browser::{Theme, button, containing, css, dialog, heading, tab, textbox};
use tempmail_tests::{App, Browser, TestDns};

use crate::dashboard::open_section;
use crate::mail::with_attachment;
use crate::states::set_offline;
use crate::{deliver_as_is, row, service, sign_in_as, take_address, wait_until_live};

/// A browser whose pages let axe-core in.
async fn audited_browser() -> Browser {
    let browser = Browser::start().await;
    browser.cdp("Page.enable", json!({})).await;
    browser.cdp("Page.setBypassCSP", json!({ "enabled": true })).await;
    browser
}

/// Asserts that axe-core finds nothing; leaves the page wide and light.
async fn assert_accessible(browser: &Browser, state: &str) {
    let (dark, light) = (Theme::Dark, Theme::Light);
    for (width, theme) in [(390, dark), (390, light), (1440, dark), (1440, light)] {
        browser.show_as(width, 900, theme).await;
        let violations = browser.accessibility_violations().await;
        assert!(violations.is_empty(), "{state} at {width} px, {}:\n{violations:#?}", theme.name());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_visit() {
    let (app, browser) = (service().await, audited_browser().await);
    browser.open(&app.url("/")).await;
    browser.wait_for(button("Get a random address")).await;
    assert_accessible(&browser, "the first visit").await;
    browser.click(button("Choose the name yourself")).await;
    browser.click(button("Create the mailbox")).await;
    browser.wait_for_text("This field is required.").await;
    assert_accessible(&browser, "a name that is wrong").await;
    browser.click(button("Sign in to an existing mailbox")).await;
    browser.wait_for(textbox("Address")).await;
    assert_accessible(&browser, "signing in to a mailbox").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_inbox() {
    let (app, browser) = (service().await, audited_browser().await);
    let address = take_address(&browser, &app).await;
    wait_until_live(&browser).await;
    assert_accessible(&browser, "an inbox without mail").await;
    let html = "<p>Hello <a href=\"https://evil.example\">https://bank.example</a></p>\
                <img src=\"https://a.example/b\">";
    deliver_as_is(&app, &address, &with_attachment(html)).await;
    app.deliver(&address, "Another", "With a preview").await;
    browser.wait_for(row("Another")).await;
    assert_accessible(&browser, "an inbox with mail").await;
    browser.click(row("The engine")).await;
    browser.wait_for(css(".mail-frame")).await;
    assert_accessible(&browser, "HTML of a message").await;
    for view in ["Text", "Headers", "Source"] {
        browser.click(tab(view)).await;
        browser.wait_for(css("[role=tabpanel]:not([hidden]) > *")).await;
        assert_accessible(&browser, view).await;
    }
    browser.click(button("Delete this message")).await;
    browser.wait_for(button("Undo")).await;
    assert_accessible(&browser, "a notice").await;
    for (opens, title) in [
        ("QR code", "QR code"),
        ("Mailbox", "Mailbox"),
        ("New address", "New address"),
        ("Keyboard shortcuts", "Keyboard shortcuts"),
    ] {
        browser.click(button(opens)).await;
        browser.wait_for(dialog(title)).await;
        assert_accessible(&browser, title).await;
        browser.click(button("Close")).await;
        browser.wait_until_gone(dialog(title)).await;
    }
    browser.click(button("Mailbox")).await;
    browser.click(button("Delete the mailbox")).await;
    browser.wait_for(dialog("Delete this mailbox?")).await;
    assert_accessible(&browser, "a question").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_without_a_network() {
    let (app, browser) = (service().await, audited_browser().await);
    let address = take_address(&browser, &app).await;
    wait_until_live(&browser).await;
    app.deliver(&address, "Another", "With a preview").await;
    browser.wait_for(row("Another")).await;
    set_offline(&browser, true).await;
    browser.wait_for(containing(".connection-banner", "You are offline.")).await;
    assert_accessible(&browser, "an inbox without a network").await;
    browser.click(row("Another")).await;
    browser.wait_for(css(".reader .problem")).await;
    assert_accessible(&browser, "a message that is not opened").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_dashboard_of_a_new_tenant() {
    let (app, browser) = (service().await, audited_browser().await);
    browser.open(&app.url("/dashboard")).await;
    browser.wait_for(textbox("Pro token")).await;
    assert_accessible(&browser, "the sign-in").await;
    browser.fill(textbox("Pro token"), "x").await;
    browser.click(button("Sign in")).await;
    browser.wait_for_text("A Pro token begins with tm_pro_.").await;
    assert_accessible(&browser, "a token that is wrong").await;
    sign_in_as(&browser, &app, &app.tenant.pro).await;
    browser.wait_for(heading("No mail yet")).await;
    assert_accessible(&browser, "no mail").await;
    for (section, empty) in
        [("Mailboxes", "No mailbox yet"), ("Domains", "No domain yet"), ("Webhooks", "No webhook yet")]
    {
        open_section(&browser, section).await;
        browser.wait_for(heading(empty)).await;
        assert_accessible(&browser, empty).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_dashboard_of_a_tenant_with_all_there_is() {
    let dns = TestDns::start().await;
    dns.domain("ships.test", 1).await;
    let app = App::builder().dns(&dns).browsable().start().await;
    furnish(&app).await;
    let browser = audited_browser().await;
    sign_in_as(&browser, &app, &app.tenant.pro).await;
    browser.wait_for(row("To the mailbox")).await;
    assert_accessible(&browser, "everything").await;
    browser.click(row("To the domain")).await;
    browser.wait_for(heading("This address has no mailbox")).await;
    assert_accessible(&browser, "a message that is not read here").await;
    browser.click(button("Delete all")).await;
    browser.wait_for(dialog("Delete all mail?")).await;
    assert_accessible(&browser, "a question").await;
    browser.click(button("Cancel")).await;
    for (section, shown, opens) in [
        ("Mailboxes", ".row", Some("New mailbox")),
        ("Domains", ".record", Some("Add a domain")),
        ("Webhooks", ".deliveries", Some("New webhook")),
        ("Tokens", ".row", Some("New token")),
        ("Usage", ".meter", None),
    ] {
        open_section(&browser, section).await;
        browser.wait_for(css(shown)).await;
        assert_accessible(&browser, section).await;
        if let Some(title) = opens {
            browser.click(button(title)).await;
            browser.wait_for(dialog(title)).await;
            browser.wait_for(css("dialog input")).await;
            assert_accessible(&browser, title).await;
            browser.click(button("Close")).await;
            browser.wait_until_gone(dialog(title)).await;
        }
    }
}

/// Gives the tenant one of each, and mail.
async fn furnish(app: &App) {
    app.mailbox(Some(&app.tenant.pro), "quay@inbox.localhost").await;
    app.custom_domain(&app.tenant, "ships.example").await;
    app.domain(&app.tenant, "ships.test").await;
    let body = json!({ "url": "https://hooks.example/mail", "events": ["email.received"] });
    let request = app.request(Method::POST, "/pro/api/webhooks").bearer(&app.tenant.pro);
    assert_eq!(request.json(&body).send().await.status, 201);
    app.deliver("anyone@ships.example", "To the domain", "").await;
    app.deliver("quay@inbox.localhost", "To the mailbox", "").await;
}
