//! The page of an `up`, which is stopped and started again.

use nix::sys::signal::Signal;
use tempmail_tests::binary::UpInstallation;
use tempmail_tests::browser::{button, containing, css, dialog, heading, textbox};
use tempmail_tests::{Browser, send_mail, smtp};

use crate::dashboard::open_section;
use crate::{row, shown_address, wait_until_live};

/// Delivers a mail to an address of an `up`.
pub(crate) async fn deliver(installation: &UpInstallation, address: &str, subject: &str) {
    let message = smtp::message("Ada <ada@client.example>", subject, "");
    let reply = send_mail(installation.smtp, "ada@client.example", address, &message).await;
    assert_eq!(reply.code, 250, "{reply:?}");
}

/// The link in the file that `up` names.
fn sign_in_link(installation: &UpInstallation) -> String {
    let link = std::fs::read_to_string(installation.data_dir().join("sign-in-link")).unwrap();
    link.trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn misses_no_mail_while_the_server_restarts() {
    let installation = UpInstallation::new();
    let mut server = tokio::task::block_in_place(|| installation.up(&[]));
    let browser = Browser::start().await;
    browser.open(&format!("http://{}/", installation.http)).await;
    browser.click(button("Get a random address")).await;
    let address = shown_address(&browser).await;
    wait_until_live(&browser).await;
    browser.evaluate("window.isSameDocument = true", vec![]).await;
    deliver(&installation, &address, "Before").await;
    browser.wait_for(row("Before")).await;
    server.signal(Signal::SIGTERM);
    assert!(tokio::task::block_in_place(|| server.wait()).success(), "{}", server.output());
    browser.wait_for(containing(".connection-state", "Reconnecting")).await;
    browser.wait_for(containing(".connection-banner", "The service cannot be reached.")).await;
    browser.wait_for(row("Before")).await;

    let _server = tokio::task::block_in_place(|| installation.up(&[]));
    deliver(&installation, &address, "Meanwhile").await;
    browser.wait_for(row("Meanwhile")).await;
    wait_until_live(&browser).await;
    browser.wait_until_text_is_gone("The service cannot be reached.").await;
    deliver(&installation, &address, "After").await;
    browser.wait_for(row("After")).await;
    browser.wait_for(row("Before")).await;
    assert_eq!(browser.evaluate("return window.isSameDocument", vec![]).await, true);
}

#[tokio::test(flavor = "multi_thread")]
async fn misses_no_mail_of_a_tenant_while_the_server_restarts() {
    let installation = UpInstallation::new();
    let mut server = tokio::task::block_in_place(|| installation.up(&[]));
    let browser = Browser::start().await;
    browser.open(&sign_in_link(&installation)).await;
    browser.wait_for(heading("Everything")).await;
    open_section(&browser, "Mailboxes").await;
    browser.click(button("New mailbox")).await;
    browser.fill(textbox("Name"), "quay").await;
    let domain = browser.evaluate("return document.querySelector('dialog select').value", vec![]).await;
    let address = format!("quay@{}", domain.as_str().unwrap());
    browser.click(button("Create the mailbox")).await;
    browser.wait_for(dialog(&format!("{address} was created."))).await;
    browser.click(button("I have stored it")).await;
    open_section(&browser, "Everything").await;
    wait_until_live(&browser).await;
    deliver(&installation, &address, "Before").await;
    browser.wait_for(row("Before")).await;
    server.signal(Signal::SIGTERM);
    assert!(tokio::task::block_in_place(|| server.wait()).success(), "{}", server.output());
    browser.wait_for(containing(".connection-banner", "The service cannot be reached.")).await;

    let _server = tokio::task::block_in_place(|| installation.up(&[]));
    deliver(&installation, &address, "Meanwhile").await;
    browser.wait_for(row("Meanwhile")).await;
    wait_until_live(&browser).await;
    deliver(&installation, &address, "After").await;
    browser.wait_for(row("After")).await;
    browser.wait_for(row("Before")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn signs_in_by_the_link_of_up_once() {
    let installation = UpInstallation::new();
    let _server = tokio::task::block_in_place(|| installation.up(&[]));
    let link = sign_in_link(&installation);
    let (_, code) = link.split_once("#/sign-in/").unwrap();
    let browser = Browser::start().await;
    browser.open(&link).await;
    browser.wait_for(heading("Everything")).await;
    assert!(!browser.url().await.contains(code), "the code is off the address bar");
    browser.reload().await;
    browser.wait_for(heading("Everything")).await;

    let other = Browser::start().await;
    other.open(&link).await;
    other.wait_for(heading("Sign in to the dashboard")).await;
    other.wait_for_text("The sign-in link did not work").await;
    assert!(other.find(css(".section-nav")).await.is_none());
}
