//! Webhooks: their secrets, and what was delivered.

use tempmail_tests::browser::{button, containing, css, dialog, heading, tab, textbox};
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Browser, Receiver};

use super::{open_section, shown_secret};
use crate::sign_in_as;

/// The languages of the sample code.
const TABS: &str = "return [...document.querySelectorAll('.guide [role=tab]')].map((tab) => tab.textContent)";

#[tokio::test(flavor = "multi_thread")]
async fn creates_a_webhook_shows_its_deliveries_and_rotates_its_secret() {
    let app = App::builder().receivers().browsable().start().await;
    let (receiver, browser) = (Receiver::start().await, Browser::start().await);
    app.mailbox(Some(&app.tenant.pro), "quay@inbox.localhost").await;
    sign_in_as(&browser, &app, &app.tenant.pro).await;
    open_section(&browser, "Webhooks").await;
    browser.wait_for(heading("No webhook yet")).await;
    browser.click(button("New webhook")).await;
    browser.fill(textbox("URL"), "http://hooks.example/").await;
    browser.click(button("New webhook")).await;
    browser.wait_for_text("This URL cannot be used.").await;
    browser.fill(textbox("URL"), &receiver.url()).await;
    browser.click(button("New webhook")).await;
    browser.wait_for(dialog("The webhook was created.")).await;
    let first = shown_secret(&browser).await;
    browser.click(button("I have stored it")).await;
    browser.wait_until_gone(dialog("The webhook was created.")).await;
    browser.wait_for(heading(&receiver.url())).await;
    browser.wait_for_text("Nothing was sent yet.").await;

    app.deliver("quay@inbox.localhost", "One", "").await;
    assert!(receiver.wait_for_requests(1).await[0].is_signed_by(&first));
    // Read again by itself after mail came.
    browser.wait_for(containing("td", "Delivered (204)")).await;
    browser.wait_for(css(".chart svg")).await;

    browser.click(button(&format!("Rotate the secret of {}", receiver.url()))).await;
    browser.wait_for(dialog("Rotate the secret?")).await;
    browser.click(button("Rotate secret")).await;
    browser.wait_for(dialog("The webhook has a new secret.")).await;
    let second = shown_secret(&browser).await;
    browser.click(button("I have stored it")).await;
    assert_ne!(first, second);
    app.deliver("quay@inbox.localhost", "Two", "").await;
    assert!(receiver.wait_for_requests(2).await[1].is_signed_by(&second));
    eventually("both attempts are in the table", || async {
        let rows = browser.evaluate("return document.querySelectorAll('tbody tr').length", vec![]).await;
        (rows == 2).then_some(())
    })
    .await;

    browser.click(button(&format!("Delete the webhook {}", receiver.url()))).await;
    browser.wait_for(dialog("Delete this webhook?")).await;
    browser.click(button("Delete")).await;
    browser.wait_for(heading("No webhook yet")).await;
    assert!(!browser.text().await.contains(&second));
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_what_a_request_has_and_code_that_checks_it() {
    let app = App::builder().browsable().start().await;
    let browser = Browser::start().await;
    sign_in_as(&browser, &app, &app.tenant.pro).await;
    open_section(&browser, "Webhooks").await;
    browser.wait_for(containing("pre", "\"email.received\"")).await;
    let labels = browser.evaluate(TABS, vec![]).await;
    let labels: Vec<&str> = labels.as_array().unwrap().iter().map(|label| label.as_str().unwrap()).collect();
    assert!(labels.len() > 1, "{labels:?}");
    for label in labels {
        browser.click(tab(label)).await;
        let sample = format!(".guide [role=tabpanel]:not([hidden]) pre[aria-label='{label}']");
        browser.wait_for(css(&sample)).await;
    }
}
