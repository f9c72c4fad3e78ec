//! Custom domains.

use jiff::SignedDuration;
use tempmail_tests::browser::{button, containing, css, dialog, heading, textbox};
use tempmail_tests::{App, Browser, TestDns};

use super::open_section;
use crate::sign_in_as;

#[tokio::test(flavor = "multi_thread")]
async fn adds_a_domain_shows_its_records_and_verifies_it() {
    let dns = TestDns::start().await;
    dns.domain("ships.test", 2).await;
    let app = App::builder().dns(&dns).browsable().start().await;
    let browser = Browser::start().await;
    sign_in_as(&browser, &app, &app.tenant.pro).await;
    open_section(&browser, "Domains").await;
    browser.wait_for(heading("No domain yet")).await;
    browser.click(button("Add a domain")).await;
    browser.fill(textbox("Domain"), "com").await;
    browser.click(button("Add a domain")).await;
    browser.wait_for_text("This domain cannot be added.").await;
    browser.fill(textbox("Domain"), "ships.test").await;
    browser.click(button("Add a domain")).await;
    browser.wait_until_gone(dialog("Add a domain")).await;
    browser.wait_for(heading("ships.test")).await;
    browser.wait_for_text("Waiting for DNS").await;
    browser.wait_for(containing(".record-state", "Missing, or it has another value")).await;

    let listed = app.domains(&app.tenant).await;
    let id = listed[0]["id"].as_str().unwrap();
    for (part, key) in [("TXT", "value"), ("TXT", "host"), ("MX", "value"), ("MX", "host")] {
        let records = listed[0]["dns_records"].as_array().unwrap();
        let record = records.iter().find(|record| record["type"] == part).unwrap();
        browser.wait_for(containing(".record code", record[key].as_str().unwrap())).await;
    }
    browser.click(button("Copy: Value of the TXT record")).await;
    browser.wait_for_text("Copied to the clipboard.").await;

    let token = listed[0]["verify_token"].as_str().unwrap();
    dns.set_txt("_tempmail.ships.test", &[&format!("tempmail-verify={token}")]).await;
    app.clock.advance(SignedDuration::from_secs(11));
    browser.click(button("Check the records of ships.test now")).await;
    browser.wait_for(css(".record[data-right=true]")).await;
    browser.wait_for(containing(".record-state", "Missing, or it names another host")).await;
    dns.set_verified("ships.test", token, "mx.inbox.localhost").await;
    app.clock.advance(SignedDuration::from_secs(11));
    browser.click(button("Check the records of ships.test now")).await;
    browser.wait_for(containing(".pill", "Verified")).await;
    assert_eq!(app.domain_state(&app.tenant, id).await.0, "verified");

    browser.click(button("Delete the domain ships.test")).await;
    browser.wait_for(dialog("Delete ships.test?")).await;
    browser.click(button("Delete")).await;
    browser.wait_for(heading("No domain yet")).await;
    assert!(app.domains(&app.tenant).await.is_empty());
}
