//! `/`: addresses, and the mail that comes to them.

use jiff::SignedDuration;
use reqwest::Method;
use serde_json::json;
use tempmail_tests::browser::{button, containing, css, dialog, heading, searchbox, textbox};
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Browser};

use crate::{
    assert_no_alarm, html_of, kept_by_the_browser, row, service, shown_address, sign_in_to, take_address,
    wait_until_live,
};

/// The JWT of the first mailbox that the browser keeps.
const STORED_JWT: &str = "return JSON.parse(localStorage.getItem('tempmail.mailboxes'))[0].token";

/// Subjects of the mailbox's messages, as its JWT in the browser reads them.
async fn subjects(app: &App, browser: &Browser) -> Vec<String> {
    let jwt = browser.evaluate(STORED_JWT, vec![]).await;
    let request = app.request(Method::GET, "/api/messages").bearer(jwt.as_str().unwrap());
    let listed = request.send().await.expect(200);
    let messages = listed["messages"].as_array().unwrap();
    messages.iter().map(|message| message["subject"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn gives_an_address_in_one_click_and_shows_mail_without_a_reload() {
    let (app, browser) = (service().await, Browser::start().await);
    let address = take_address(&browser, &app).await;
    assert!(address.ends_with("@inbox.localhost"), "{address}");
    browser.wait_for_text("Waiting for mail").await;
    wait_until_live(&browser).await;
    browser.evaluate("window.isSameDocument = true", vec![]).await;
    app.deliver(&address, "Your code is 4711", "It is valid for ten minutes.").await;
    browser.wait_for(row("Your code is 4711")).await;
    browser.wait_for(row("It is valid for ten minutes.")).await;
    assert_eq!(browser.evaluate("return window.isSameDocument", vec![]).await, true);
    let title = format!("(1) {address} – tempmail");
    eventually("the title counts what is unread", || async {
        (browser.evaluate("return document.title", vec![]).await == title).then_some(())
    })
    .await;
    assert_no_alarm(&browser).await;
    let network = browser.network().await;
    assert_eq!(network.urls_beyond(&app.url("")), Vec::<&str>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_the_address_and_shows_it_as_a_qr_code() {
    let (app, browser) = (service().await, Browser::start().await);
    let address = take_address(&browser, &app).await;
    browser.click(button(&format!("Copy the address {address}"))).await;
    browser.wait_for_text("Copied").await;
    browser.click(button("QR code")).await;
    browser.wait_for(dialog("QR code")).await;
    browser.wait_for(css(&format!("svg[aria-label='QR code of {address}']"))).await;
    browser.click(button("Close")).await;
    browser.wait_until_gone(dialog("QR code")).await;
    assert_no_alarm(&browser).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn takes_a_name_of_ones_own_and_says_what_is_wrong_with_it() {
    let (app, browser) = (service().await, Browser::start().await);
    app.mailbox(None, "taken@inbox.localhost").await;
    browser.open(&app.url("/")).await;
    browser.click(button("Choose the name yourself")).await;
    for (name, words) in [
        ("", "This field is required."),
        ("two..dots", "without two dots in a row"),
        ("admin", "This name is reserved."),
        ("taken", "This address is in use."),
    ] {
        browser.fill(textbox("Name"), name).await;
        browser.click(button("Create the mailbox")).await;
        browser.wait_for_text(words).await;
    }
    browser.fill(textbox("Name"), "boat").await;
    browser.fill(textbox("Password (optional)"), "short").await;
    browser.click(button("Create the mailbox")).await;
    browser.wait_for_text("The password is too short.").await;
    browser.fill(textbox("Password (optional)"), "correct horse").await;
    browser.click(button("Create the mailbox")).await;
    assert_eq!(shown_address(&browser).await, "boat@inbox.localhost");
    let body = json!({ "address": "boat@inbox.localhost", "password": "correct horse" });
    let signed_in = app.request(Method::POST, "/api/token").json(&body).send().await;
    assert_eq!(signed_in.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn signs_in_to_an_existing_mailbox_and_keeps_no_password() {
    let (app, browser) = (service().await, Browser::start().await);
    let mailbox = app.mailbox(None, "boat@inbox.localhost").await;
    app.deliver(&mailbox.address, "From before", "").await;
    browser.open(&app.url("/")).await;
    browser.click(button("Sign in to an existing mailbox")).await;
    browser.fill(textbox("Address"), &mailbox.address).await;
    browser.fill(textbox("Password"), "wrong password").await;
    browser.click(button("Sign in")).await;
    browser.wait_for_text("The address or the password is wrong.").await;
    browser.fill(textbox("Password"), &mailbox.password).await;
    browser.click(button("Sign in")).await;
    browser.wait_for(row("From before")).await;
    browser.reload().await;
    browser.wait_for(row("From before")).await;
    let kept = kept_by_the_browser(&browser).await;
    assert!(kept.to_string().contains(&mailbox.address), "it stays signed in: {kept}");
    assert!(!kept.to_string().contains(&mailbox.password), "{kept}");
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_a_made_password_once_and_keeps_it_nowhere() {
    let (app, browser) = (service().await, Browser::start().await);
    let address = take_address(&browser, &app).await;
    browser.click(button("Mailbox")).await;
    browser.wait_for(dialog("Mailbox")).await;
    browser.wait_for(css("code.secret")).await;
    let password = browser.evaluate("return document.querySelector('code.secret').textContent", vec![]).await;
    let password = password.as_str().unwrap().to_owned();
    assert_eq!(password.chars().count(), 20);
    let body = json!({ "address": address, "password": password });
    let signed_in = app.request(Method::POST, "/api/token").json(&body).send().await;
    assert_eq!(signed_in.status, 200);
    assert!(!kept_by_the_browser(&browser).await.to_string().contains(&password));
    browser.reload().await;
    browser.click(button("Mailbox")).await;
    browser.wait_for_text("This browser stays signed in for 7 days.").await;
    assert!(!browser.text().await.contains(&password));
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_several_mailboxes_apart() {
    let (app, browser) = (service().await, Browser::start().await);
    let first = take_address(&browser, &app).await;
    browser.click(button("New address")).await;
    browser.wait_for(dialog("New address")).await;
    browser.click(button("Get a random address")).await;
    browser.wait_until_gone(dialog("New address")).await;
    let second = shown_address(&browser).await;
    assert_ne!(first, second);
    wait_until_live(&browser).await;
    app.deliver(&first, "For the first", "").await;
    app.deliver(&second, "For the second", "").await;
    browser.wait_for(row("For the second")).await;
    assert!(browser.find(row("For the first")).await.is_none());
    let (local, _) = first.split_once('@').unwrap();
    browser.wait_for(containing(".switcher-item .count", "1")).await;
    browser.click(containing(".switcher-item", local)).await;
    browser.wait_for(row("For the first")).await;
    assert!(browser.find(row("For the second")).await.is_none());
    browser.reload().await;
    assert_eq!(shown_address(&browser).await, first, "the chosen one is remembered");
    browser.click(button("Mailbox")).await;
    browser.click(button("Sign out here")).await;
    eventually("the other mailbox is shown", || async {
        (shown_address(&browser).await == second).then_some(())
    })
    .await;
    assert!(!kept_by_the_browser(&browser).await.to_string().contains(&first));
}

#[tokio::test(flavor = "multi_thread")]
async fn signs_out_of_mailboxes_in_every_tab_and_leaves_nothing() {
    let (app, browser) = (service().await, Browser::start().await);
    let mailbox = app.mailbox(None, "boat@inbox.localhost").await;
    app.deliver(&mailbox.address, "For the boat alone", "").await;
    sign_in_to(&browser, &app, &mailbox).await;
    let token = browser.evaluate(STORED_JWT, vec![]).await.as_str().unwrap().to_owned();
    browser.open_tab(&app.url("/")).await;
    browser.wait_for(row("For the boat alone")).await;
    browser.click(button("Mailbox")).await;
    browser.click(button("Sign out here")).await;
    browser.wait_for(heading("An inbox in one click.")).await;
    browser.switch_to_other_tab().await;
    browser.wait_for(heading("An inbox in one click.")).await;
    // What was said to screen readers stays for 5 s.
    browser.wait_until_text_is_gone("boat").await;
    let (kept, source) = (kept_by_the_browser(&browser).await.to_string(), html_of(&browser).await);
    for secret in ["boat", &mailbox.id.to_string(), &token] {
        assert!(!kept.contains(secret) && !source.contains(secret), "{secret}: {kept}\n{source}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_a_message_after_the_time_to_undo() {
    let (app, browser) = (service().await, Browser::start().await);
    let address = take_address(&browser, &app).await;
    wait_until_live(&browser).await;
    for subject in ["First", "Second"] {
        app.deliver(&address, subject, "").await;
    }
    browser.click(row("Second")).await;
    browser.click(button("Delete this message")).await;
    browser.wait_for_text("The message was deleted.").await;
    browser.wait_until_gone(row("Second")).await;
    browser.click(button("Undo")).await;
    browser.wait_for(row("Second")).await;
    assert_eq!(subjects(&app, &browser).await, ["Second", "First"]);
    browser.click(row("Second")).await;
    browser.click(button("Delete this message")).await;
    browser.wait_until_gone(row("Second")).await;
    browser.click(button("Close this notice")).await;
    eventually("the message is deleted", || async {
        (subjects(&app, &browser).await == ["First"]).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_a_mailbox_once_that_is_confirmed() {
    let (app, browser) = (service().await, Browser::start().await);
    let address = take_address(&browser, &app).await;
    browser.click(button("Mailbox")).await;
    browser.click(button("Delete the mailbox")).await;
    browser.wait_for(dialog("Delete this mailbox?")).await;
    browser.click(button("Cancel")).await;
    browser.wait_until_gone(dialog("Delete this mailbox?")).await;
    browser.click(button("Delete the mailbox")).await;
    browser.wait_for(dialog("Delete this mailbox?")).await;
    browser.click(button("Delete the mailbox")).await;
    browser.wait_for(heading("An inbox in one click.")).await;
    app.create_mailbox(None, &address, "correct horse").await.assert_api_error(409, "address_taken");
    assert!(!kept_by_the_browser(&browser).await.to_string().contains(&address));
}

#[tokio::test(flavor = "multi_thread")]
async fn finds_messages_by_their_words() {
    let (app, browser) = (service().await, Browser::start().await);
    let address = take_address(&browser, &app).await;
    wait_until_live(&browser).await;
    for (subject, body) in [("Anchor", "of iron"), ("Sail", "of linen"), ("Anchor chain", "of steel")] {
        app.deliver(&address, subject, body).await;
    }
    browser.wait_for(row("Anchor chain")).await;
    browser.fill(searchbox("Search in loaded mail"), "anchor iron").await;
    browser.wait_until_gone(row("Sail")).await;
    browser.wait_until_gone(row("Anchor chain")).await;
    browser.wait_for(row("of iron")).await;
    browser.fill(searchbox("Search in loaded mail"), "rudder").await;
    browser.wait_for_text("Nothing found").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn loads_older_mail_as_one_scrolls() {
    let (app, browser) = (service().await, Browser::start().await);
    let mailbox = app.mailbox(None, "boat@inbox.localhost").await;
    for number in 0..75 {
        app.deliver(&mailbox.address, &format!("Mail {number:02}."), "").await;
    }
    sign_in_to(&browser, &app, &mailbox).await;
    browser.wait_for(row("Mail 74.")).await;
    eventually("all mail is loaded", || async {
        let scroll = "document.querySelector('.list-end').scrollIntoView();
                      return document.querySelectorAll('.message-row').length";
        (browser.evaluate(scroll, vec![]).await == 75).then_some(())
    })
    .await;
    browser.wait_for(row("Mail 00.")).await;
    browser.wait_for_text("75 messages").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn takes_a_message_off_the_list_when_its_time_is_over() {
    let (app, browser) = (service().await, Browser::start().await);
    // What is accepted now has 45 s left for a browser, whose clock is that of the machine.
    app.clock.advance(SignedDuration::from_secs(45 - 3600));
    let address = take_address(&browser, &app).await;
    wait_until_live(&browser).await;
    app.deliver(&address, "Soon over", "").await;
    browser.wait_for(row("Soon over")).await;
    browser.click(row("Soon over")).await;
    browser.wait_for(css(".countdown-soon")).await;
    browser.wait_until_gone(row("Soon over")).await;
    app.clock.advance(SignedDuration::from_secs(3600));
    browser.reload().await;
    browser.wait_for_text("Waiting for mail").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn says_that_a_mailbox_is_signed_out_and_signs_in_again() {
    let (app, browser) = (service().await, Browser::start().await);
    let mailbox = app.mailbox(Some(&app.tenant.pro), "boat@inbox.localhost").await;
    sign_in_to(&browser, &app, &mailbox).await;
    wait_until_live(&browser).await;
    let path = format!("/pro/api/accounts/{}/reset-password", mailbox.id);
    let reset = app.request(Method::PUT, &path).bearer(&app.tenant.pro);
    assert_eq!(reset.json(&json!({ "password": "battery staple" })).send().await.status, 200);
    browser.wait_for_text("This mailbox is signed out.").await;
    browser.click(button("Sign in")).await;
    browser.fill(textbox("Password"), "battery staple").await;
    browser.click(button("Sign in")).await;
    wait_until_live(&browser).await;
    browser.wait_until_text_is_gone("This mailbox is signed out.").await;
}
