//! What the page costs to load.

use tempmail_tests::browser::{button, css};
use tempmail_tests::{App, Browser};

use crate::{service, take_address};

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
