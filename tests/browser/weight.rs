//! What the page costs: its bytes to load, and the rows of an inbox of 500 mails.

use tempmail_tests::browser::{button, containing, css, key, searchbox};
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Browser};

use crate::{row, service, sign_in_to, take_address, wait_until_live};

/// Bytes over the wire, header fields included.
const MOST: f64 = 150_000.0;

/// Bytes that a page loads with an empty cache.
pub(crate) async fn bytes_of(app: &App, path: &str) -> f64 {
    let browser = Browser::start().await;
    browser.open(&app.url(path)).await;
    browser.wait_for(css("h1")).await;
    let network = browser.network().await;
    let bytes = network.encoded_bytes();
    assert!(bytes > 10_000.0, "{bytes} bytes of {:?}", network.urls());
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn each_page_is_under_150_kb_in_all() {
    let app = service().await;
    for path in ["/", "/dashboard"] {
        let bytes = bytes_of(&app, path).await;
        assert!(bytes < MOST, "{path} has {bytes} bytes");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn loads_from_its_own_origin_alone_and_again_from_the_cache() {
    let (app, browser) = (service().await, Browser::start().await);
    take_address(&browser, &app).await;
    let first = browser.network().await;
    assert_eq!(first.urls_beyond(&app.url("")), Vec::<&str>::new());
    browser.reload().await;
    browser.wait_for(button("Mailbox")).await;
    let again = browser.network().await;
    assert!(again.encoded_bytes() - first.encoded_bytes() < MOST / 2.0, "files are not sent twice");
}

const MAILS: usize = 500;

/// Rows that are made before one scrolls: what is seen, and as many again.
const MOST_ROWS: u64 = 120;

async fn count_rows(browser: &Browser) -> u64 {
    let rows = browser.evaluate("return document.querySelectorAll('.message-row').length", vec![]).await;
    rows.as_u64().unwrap()
}

/// Returns once a row has the focus.
async fn wait_for_focus(browser: &Browser, subject: &str) {
    eventually(&format!("the row of {subject:?} has the focus"), || async {
        let script = "return document.activeElement.matches('.message-row')
            && document.activeElement.textContent.includes(arguments[0])";
        (browser.evaluate(script, vec![subject.into()]).await == true).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_an_inbox_of_500_mails_with_few_rows_and_by_keyboard() {
    let (app, browser) = (service().await, Browser::start().await);
    let mailbox = app.mailbox(None, "boat@inbox.localhost").await;
    for number in 0..MAILS {
        app.deliver(&mailbox.address, &format!("Mail {number:03}."), "").await;
    }
    sign_in_to(&browser, &app, &mailbox).await;
    browser.wait_for(row("Mail 499.")).await;
    assert!(count_rows(&browser).await <= MOST_ROWS);

    browser.fill(searchbox("Search in loaded mail"), "007.").await;
    browser.click(button("Load older mail and search in it, too")).await;
    browser.wait_for(row("Mail 007.")).await;
    assert_eq!(count_rows(&browser).await, 1);
    browser.click(searchbox("Search in loaded mail")).await;
    browser.press(&[key::ESCAPE]).await;
    browser.wait_for(row("Mail 499.")).await;
    browser.wait_for_text("500 messages").await;
    assert!(count_rows(&browser).await <= MOST_ROWS);

    // Tab comes to one row of the list, and keys go on from there.
    let stops = "return document.querySelectorAll('.message-row[tabindex=\"0\"]').length";
    assert_eq!(browser.evaluate(stops, vec![]).await, 1);
    browser.evaluate("document.querySelector('.message-row[tabindex=\"0\"]').focus()", vec![]).await;
    wait_for_focus(&browser, "Mail 499.").await;
    browser.press(&[key::END]).await;
    wait_for_focus(&browser, "Mail 000.").await;
    browser.press(&[key::UP, key::UP]).await;
    wait_for_focus(&browser, "Mail 002.").await;
    browser.press(&[key::HOME, key::DOWN, key::DOWN, key::DOWN]).await;
    wait_for_focus(&browser, "Mail 496.").await;
    browser.press(&[key::ENTER]).await;
    browser.wait_for(containing(".reader-subject", "Mail 496.")).await;
    browser.press(&['j']).await;
    browser.wait_for(containing(".reader-subject", "Mail 495.")).await;
    browser.press(&['#']).await;
    browser.wait_until_gone(row("Mail 495.")).await;
    wait_for_focus(&browser, "Mail 494.").await;

    wait_until_live(&browser).await;
    app.deliver(&mailbox.address, "Mail 500.", "").await;
    browser.wait_for(row("Mail 500.")).await;
    wait_for_focus(&browser, "Mail 494.").await;
}
