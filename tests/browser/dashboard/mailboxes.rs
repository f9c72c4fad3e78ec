//! Mailboxes of a tenant, and everything that it owns.

use reqwest::Method;
use serde_json::json;
use tempmail_tests::browser::{button, containing, css, dialog, heading, link, searchbox, tab, textbox};
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Browser};

use super::open_section;
use crate::mail::with_attachment;
use crate::{assert_no_alarm, deliver_as_is, row, service, sign_in_as};

async fn can_sign_in(app: &App, address: &str, password: &str) -> bool {
    let body = json!({ "address": address, "password": password });
    app.request(Method::POST, "/api/token").json(&body).send().await.status == 200
}

#[tokio::test(flavor = "multi_thread")]
async fn creates_reads_resets_and_deletes_a_mailbox() {
    let (app, browser) = (service().await, Browser::start().await);
    app.custom_domain(&app.tenant, "ships.example").await;
    sign_in_as(&browser, &app, &app.tenant.pro).await;
    open_section(&browser, "Mailboxes").await;
    browser.click(button("New mailbox")).await;
    browser.fill(textbox("Name"), "admiral").await;
    browser.fill(textbox("Password (optional)"), "correct horse").await;
    browser.click(button("Create the mailbox")).await;
    browser.wait_until_gone(dialog("New mailbox")).await;
    // The tenant's own domain is offered first.
    let address = "admiral@ships.example";
    assert!(can_sign_in(&app, address, "correct horse").await);

    browser.click(link(address)).await;
    browser.wait_for(heading(address)).await;
    deliver_as_is(&app, address, &with_attachment("<p>For the admiral</p>")).await;
    browser.click(row("The engine")).await;
    browser.wait_for_text_in_frame(css(".mail-frame"), "For the admiral").await;
    browser.click(tab("Source")).await;
    browser.wait_for(containing("pre.source", "report.pdf")).await;
    browser.click(button("Download report.pdf")).await;
    assert_eq!(browser.downloaded("report.pdf").await, b"%PDF-report");
    assert_no_alarm(&browser).await;

    open_section(&browser, "Mailboxes").await;
    browser.click(button(&format!("Reset the password of {address}"))).await;
    browser.fill(textbox("Password (optional)"), "battery staple").await;
    browser.click(button("Reset password")).await;
    browser.wait_for_text(&format!("{address} has a new password.")).await;
    assert!(can_sign_in(&app, address, "battery staple").await);
    assert!(!can_sign_in(&app, address, "correct horse").await);

    browser.click(button(&format!("Delete the mailbox {address}"))).await;
    browser.wait_for(dialog("Delete this mailbox?")).await;
    browser.click(button("Delete the mailbox")).await;
    browser.wait_for(heading("No mailbox yet")).await;
    assert!(!can_sign_in(&app, address, "battery staple").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_and_finds_each_of_a_thousand_mailboxes() {
    let (app, browser) = (service().await, Browser::start().await);
    // As rows, since each creation hashes a password.
    sqlx::query(
        "INSERT INTO mailbox (id, domain, local_part, tenant, quota, password_hash, created_at, seen_at)
         SELECT gen_random_uuid(), d.id, 'm' || n, $1, 100, '', d.created_at + n * interval '1 s', d.created_at
         FROM generate_series(1, 1005) n, domain d",
    )
    .bind(app.tenant.id)
    .execute(&app.pool)
    .await
    .unwrap();
    sign_in_as(&browser, &app, &app.tenant.pro).await;
    open_section(&browser, "Mailboxes").await;
    browser.wait_for_text("1,005 mailboxes").await;
    let rows = browser.evaluate("return document.querySelectorAll('.row').length", vec![]).await;
    assert_eq!(rows, 100, "the others are made when they are asked for");
    // The oldest, which is on the second page of the list.
    browser.fill(searchbox("Filter by address"), "m1@").await;
    browser.wait_for(link("m1@inbox.localhost")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_everything_live_and_deletes_all_of_it() {
    let (app, browser) = (service().await, Browser::start().await);
    app.custom_domain(&app.tenant, "ships.example").await;
    app.mailbox(Some(&app.tenant.pro), "quay@inbox.localhost").await;
    sign_in_as(&browser, &app, &app.tenant.pro).await;
    browser.wait_for(css(".connection-state[data-state=live]")).await;
    app.deliver("quay@inbox.localhost", "To the mailbox", "").await;
    app.deliver("anyone@ships.example", "To the domain", "").await;
    browser.wait_for(row("To the domain")).await;
    browser.wait_for(row("quay@inbox.localhost")).await;
    browser.click(row("To the mailbox")).await;
    browser.wait_for(containing(".reader-subject", "To the mailbox")).await;
    browser.click(row("To the domain")).await;
    browser.wait_for(heading("This address has no mailbox")).await;
    browser.wait_for(row("To the domain")).await;

    browser.click(button("Delete all")).await;
    browser.wait_for(dialog("Delete all mail?")).await;
    browser.click(button("Delete all")).await;
    browser.wait_for(heading("No mail yet")).await;
    eventually("nothing is left", || async {
        let request = app.request(Method::GET, "/pro/api/messages").bearer(&app.tenant.pro);
        let listed = request.send().await.expect(200);
        listed["messages"].as_array().unwrap().is_empty().then_some(())
    })
    .await;
}
