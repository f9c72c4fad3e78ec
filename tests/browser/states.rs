//! What the page says and does while the network, the service or its limits are in the way.

use serde_json::{Value, json};
use tempmail_tests::browser::{button, containing, css, heading};
use tempmail_tests::postgres::PostgresProxy;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Browser, TestDns, rows};

use crate::dashboard::open_section;
use crate::{go_to, row, service, sign_in_as, sign_in_to, take_address, wait_until_live};

/// Takes the network from the browser, or gives it back.
pub(crate) async fn set_offline(browser: &Browser, is_offline: bool) {
    // -1: as fast as it is.
    let conditions =
        json!({"offline": is_offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1});
    browser.cdp("Network.emulateNetworkConditions", conditions).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn says_that_it_is_offline_and_misses_nothing() {
    let (app, browser) = (service().await, Browser::start().await);
    let address = take_address(&browser, &app).await;
    wait_until_live(&browser).await;
    app.deliver(&address, "Before", "").await;
    browser.wait_for(row("Before")).await;
    set_offline(&browser, true).await;
    browser.wait_for(css(".connection-state[data-state=offline]")).await;
    browser.wait_for(containing(".connection-banner", "You are offline.")).await;
    browser.wait_for(row("Before")).await;
    app.deliver(&address, "Meanwhile", "").await;

    set_offline(&browser, false).await;
    wait_until_live(&browser).await;
    browser.wait_for(row("Meanwhile")).await;
    browser.wait_until_text_is_gone("You are offline.").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn says_why_a_message_is_not_opened_without_a_network_and_opens_it_with_one() {
    let (app, browser) = (service().await, Browser::start().await);
    let address = take_address(&browser, &app).await;
    wait_until_live(&browser).await;
    app.deliver(&address, "Unread", "").await;
    browser.wait_for(row("Unread")).await;
    set_offline(&browser, true).await;
    browser.click(row("Unread")).await;
    browser.wait_for(containing(".reader .problem", "You are offline.")).await;
    set_offline(&browser, false).await;
    browser.click(button("Try again")).await;
    browser.wait_for(containing(".reader-subject", "Unread")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn says_that_the_service_is_busy_and_goes_on_by_itself() {
    let proxy = PostgresProxy::start().await;
    let app = App::builder().postgres_through(proxy.port()).browsable().start().await;
    let browser = Browser::start().await;
    let mailbox = app.mailbox(None, "boat@inbox.localhost").await;
    app.deliver(&mailbox.address, "From before", "").await;
    sign_in_to(&browser, &app, &mailbox).await;
    browser.wait_for(row("From before")).await;
    proxy.cut();
    browser.reload().await;
    browser.wait_for(containing(".list-status .problem", "The service is busy or restarting.")).await;
    browser.wait_for(css(".connection-state:not([data-state=live])")).await;
    proxy.restore();
    // Without a click.
    browser.wait_for(row("From before")).await;
    wait_until_live(&browser).await;
    browser.wait_until_text_is_gone("The service is busy or restarting.").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn says_that_a_section_is_not_there_and_reads_it_again() {
    let proxy = PostgresProxy::start().await;
    let app = App::builder().postgres_through(proxy.port()).browsable().start().await;
    let browser = Browser::start().await;
    sign_in_as(&browser, &app, &app.tenant.pro).await;
    proxy.cut();
    go_to(&browser, "#/usage").await;
    browser.wait_for(containing(".section .problem", "The service is busy or restarting.")).await;
    proxy.restore();
    browser.wait_for(css(".usage .meter")).await;
    browser.wait_until_text_is_gone("The service is busy or restarting.").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_down_until_another_address_may_be_taken() {
    let limited = App::builder().browsable().config(|config| {
        config.http.unlimited_networks.clear();
        config.limits.free_mailboxes_per_hour = 1;
    });
    let (app, browser) = (limited.start().await, Browser::start().await);
    let first = take_address(&browser, &app).await;
    browser.click(button("New address")).await;
    browser.click(button("Get a random address")).await;
    browser.wait_for_text("Too many requests.").await;
    browser.wait_for(containing("dialog .button-large[aria-disabled=true]", "Again in")).await;
    let kept = browser.evaluate("return localStorage.getItem('tempmail.mailboxes')", vec![]).await;
    let kept: Value = serde_json::from_str(kept.as_str().unwrap()).unwrap();
    assert_eq!(kept.as_array().unwrap().len(), 1, "{kept}");
    assert_eq!(kept[0]["address"], first);
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_down_until_a_domain_may_be_checked_again() {
    let dns = TestDns::start().await;
    dns.domain("ships.test", 1).await;
    let app = App::builder().dns(&dns).browsable().start().await;
    let browser = Browser::start().await;
    app.domain(&app.tenant, "ships.test").await;
    sign_in_as(&browser, &app, &app.tenant.pro).await;
    open_section(&browser, "Domains").await;
    browser.wait_for(heading("ships.test")).await;
    eventually("a check is refused", || async {
        browser.click(button("Check the records of ships.test now")).await;
        browser.text().await.contains("Too many requests.").then_some(())
    })
    .await;
    browser.wait_for(containing(".card button[aria-disabled=true]", "Again in")).await;
    browser.wait_for(containing(".card button:not([aria-disabled])", "Check now")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn says_that_the_tenant_is_suspended() {
    let (app, browser) = (service().await, Browser::start().await);
    sign_in_as(&browser, &app, &app.tenant.pro).await;
    rows::suspend_tenant(&app.pool, app.tenant.id).await;
    browser.reload().await;
    browser.wait_for_text("This account is suspended.").await;
    browser.wait_for_text("Its mail is not lost.").await;
}
