//! `/dashboard`: what a tenant manages.

mod domains;
mod mailboxes;
mod session;
mod tenants;
mod tokens;
mod webhooks;

use tempmail_tests::Browser;
use tempmail_tests::browser::{css, heading, link};

/// Opens a section of the dashboard.
pub(crate) async fn open_section(browser: &Browser, title: &str) {
    browser.click(link(title)).await;
    browser.wait_for(heading(title)).await;
}

/// The secret in the dialog that shows one.
async fn shown_secret(browser: &Browser) -> String {
    browser.wait_for(css("dialog code.secret")).await;
    let script = "return document.querySelector('dialog code.secret').textContent";
    browser.evaluate(script, vec![]).await.as_str().unwrap().to_owned()
}
