//! The page without a mouse.

use serde_json::Value;
use tempmail_tests::Browser;
use tempmail_tests::browser::{button, containing, css, dialog, key, textbox};
use tempmail_tests::wait::eventually;

use crate::mail::with_attachment;
use crate::{deliver_as_is, row, service, shown_address, wait_until_live};

/// More than there is to stop at before anything in a page.
const MOST_STOPS: usize = 80;

/// What has the focus: whether a selector matches it, whether that is seen, and what it is.
async fn focused(browser: &Browser, selector: &str) -> (bool, bool, String) {
    let script = "const node = document.activeElement; const style = getComputedStyle(node);
        return [node.matches(arguments[0]), node.matches(':focus-visible') && style.outlineStyle !== 'none',
                node.outerHTML.slice(0, 200)]";
    let found = browser.evaluate(script, vec![Value::from(selector)]).await;
    (found[0] == true, found[1] == true, found[2].as_str().unwrap().to_owned())
}

/// Presses Tab until an element has the focus, which is seen at every stop.
async fn tab_to(browser: &Browser, selector: &str) {
    let mut stops = Vec::new();
    for _ in 0..MOST_STOPS {
        browser.press(&[key::TAB]).await;
        let (is_there, is_seen, what) = focused(browser, selector).await;
        // The browser's own parts and the frame of a mail show their focus themselves.
        let is_of_browser = what.starts_with("<body") || what.starts_with("<iframe");
        assert!(is_seen || is_of_browser, "no focus is seen on {what}");
        if is_there {
            return;
        }
        stops.push(what);
    }
    panic!("Tab does not lead to `{selector}`: {stops:#?}");
}

/// Returns once an element has the focus.
async fn wait_for_focus(browser: &Browser, selector: &str) {
    eventually(&format!("`{selector}` has the focus"), || async {
        focused(browser, selector).await.0.then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn takes_an_address_reads_and_deletes_mail() {
    let (app, browser) = (service().await, Browser::start().await);
    browser.open(&app.url("/")).await;
    browser.wait_for(button("Get a random address")).await;
    browser.press(&[key::TAB]).await;
    wait_for_focus(&browser, ".skip-link").await;
    browser.press(&[key::ENTER]).await;
    wait_for_focus(&browser, "main").await;
    tab_to(&browser, ".button-large").await;
    browser.press(&[key::ENTER]).await;
    let address = shown_address(&browser).await;
    wait_for_focus(&browser, ".copy-address").await;
    wait_until_live(&browser).await;
    let html = "<p>Hello <a href=\"https://client.example/\">there</a></p>";
    deliver_as_is(&app, &address, &with_attachment(html)).await;
    app.deliver(&address, "Another", "").await;
    browser.wait_for(row("Another")).await;

    tab_to(&browser, ".message-row").await;
    browser.press(&[key::DOWN]).await;
    wait_for_focus(&browser, "li:nth-child(2) > .message-row").await;
    browser.press(&[key::ENTER]).await;
    wait_for_focus(&browser, ".reader-subject").await;
    browser.wait_for(css(".mail-frame")).await;
    tab_to(&browser, ".attachment button").await;
    tab_to(&browser, "[role=tab][aria-selected=true]").await;
    browser.press(&[key::RIGHT]).await;
    browser.wait_for_text("The plain engine:").await;
    browser.press(&[key::ESCAPE]).await;
    wait_for_focus(&browser, ".message-row").await;

    browser.press(&['j']).await;
    browser.wait_for(css(".reader-subject")).await;
    browser.press(&['#']).await;
    browser.wait_for_text("The message was deleted.").await;
    browser.press(&['z']).await;
    browser.wait_for(row("Another")).await;
    browser.wait_for(row("The engine")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn opens_and_leaves_dialogs_and_gives_the_focus_back() {
    let (app, browser) = (service().await, Browser::start().await);
    browser.open(&app.url("/")).await;
    browser.wait_for(button("Get a random address")).await;
    tab_to(&browser, ".button-large").await;
    browser.press(&[key::ENTER]).await;
    shown_address(&browser).await;
    tab_to(&browser, ".address-card [aria-haspopup=dialog]").await;
    browser.press(&[key::ENTER]).await;
    browser.wait_for(dialog("QR code")).await;
    // Tab stays in the dialog.
    for _ in 0..5 {
        browser.press(&[key::TAB]).await;
        let (is_inside, _, what) = focused(&browser, "dialog *, body").await;
        assert!(is_inside, "{what}");
    }
    browser.press(&[key::ESCAPE]).await;
    browser.wait_until_gone(dialog("QR code")).await;
    wait_for_focus(&browser, ".address-card [aria-haspopup=dialog]").await;
    browser.press(&['?']).await;
    browser.wait_for(dialog("Keyboard shortcuts")).await;
    browser.press(&[key::ESCAPE]).await;
    browser.wait_until_gone(dialog("Keyboard shortcuts")).await;
    browser.press(&['n']).await;
    browser.wait_for(dialog("New address")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn signs_in_to_the_dashboard_and_goes_through_its_sections() {
    let (app, browser) = (service().await, Browser::start().await);
    browser.open(&app.url("/dashboard")).await;
    browser.wait_for(textbox("Pro token")).await;
    wait_for_focus(&browser, "input[type=password]").await;
    browser.type_text(&app.tenant.pro).await;
    browser.press(&[key::ENTER]).await;
    browser.wait_for(css(".section-nav")).await;
    tab_to(&browser, ".section-nav a[href='#/tokens']").await;
    browser.press(&[key::ENTER]).await;
    browser.wait_for_text("Credentials for programs.").await;
    tab_to(&browser, ".section-head [aria-haspopup=dialog]").await;
    browser.press(&[key::ENTER]).await;
    wait_for_focus(&browser, "dialog input").await;
    browser.type_text("robot").await;
    browser.press(&[key::ENTER]).await;
    browser.wait_for(dialog("The token was created.")).await;
    tab_to(&browser, "dialog .dialog-actions button").await;
    browser.press(&[key::ENTER]).await;
    browser.wait_until_gone(dialog("The token was created.")).await;
    browser.wait_for(containing(".row", "robot")).await;
    browser.press(&['6']).await;
    browser.wait_for_text("What your tenant uses").await;
}
