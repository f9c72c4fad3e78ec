//! Mail that tries to run, load or send something, or to make the page unusable. A canary stands for every other host.

use std::collections::BTreeSet;

use serde_json::Value;
use tempmail_tests::app::Mailbox;
use tempmail_tests::browser::{button, containing, css, tab};
use tempmail_tests::corpus::{fixture, hostile_names};
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Browser, Receiver};

use crate::mail::with_html;
use crate::{assert_no_alarm, deliver_as_is, go_to, newest_id, service, sign_in_to};

const FRAME: &str = ".mail-frame";

/// What the scripts of the mails set on the page.
const RAN: &str = "return window.ran ?? null";

/// Bytes of the largest HTML.
const LARGE: usize = 5_000_000;

/// A service, a browser with a mailbox of it, and a canary at which every other host is.
struct Scene {
    canary: Receiver,
    app: App,
    browser: Browser,
    mailbox: Mailbox,
}

impl Scene {
    async fn create() -> Self {
        let (canary, app) = (Receiver::start().await, service().await);
        let browser = Browser::start_with_canary(canary.address()).await;
        let mailbox = app.mailbox(None, "boat@inbox.localhost").await;
        sign_in_to(&browser, &app, &mailbox).await;
        Self { canary, app, browser, mailbox }
    }

    /// Delivers a mail and opens it.
    async fn open(&self, mail: &[u8]) {
        go_to(&self.browser, "#/").await;
        self.browser.wait_until_gone(css(".reader-subject")).await;
        deliver_as_is(&self.app, &self.mailbox.address, mail).await;
        let id = newest_id(&self.app, &self.mailbox).await;
        go_to(&self.browser, &format!("#/message/{id}")).await;
        let address = format!("a.message-row[href$='{id}'][aria-current=true]");
        self.browser.wait_for(css(&address)).await;
        self.browser.wait_for(css(".reader-subject")).await;
    }

    /// Asserts that nothing has left the page, and that no script of a mail has run.
    async fn assert_unharmed(&self, what: &str) {
        let browser = &self.browser;
        assert_eq!(browser.evaluate(RAN, vec![]).await, Value::Null, "{what}");
        assert_eq!(browser.page_count().await, 1, "{what} opened a page");
        assert!(browser.url().await.starts_with(&self.app.url("/")), "{what} left the page");
        let network = browser.network().await;
        assert_eq!(network.urls_beyond(&self.app.url("")), Vec::<&str>::new(), "{what}");
        assert_eq!(self.canary.connection_count(), 0, "{what} reached the canary");
        assert_no_alarm(browser).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_runs_loads_or_leaves() {
    let scene = Scene::create().await;
    let browser = &scene.browser;
    let names = hostile_names();
    assert!(names.len() > 10, "{names:?}");
    for name in &names {
        scene.open(&fixture(name)).await;
        if browser.find(tab("HTML")).await.is_some() {
            browser.wait_for_text_in_frame(css(FRAME), "Shown:").await;
        }
        for view in ["Text", "Headers", "Source"] {
            browser.click(tab(view)).await;
        }
        browser.wait_for(css("pre.source")).await;
        scene.assert_unharmed(name).await;
    }
    // The canary would have noticed: this is the first thing that reaches it.
    let html = "<p>Shown: control</p><img src=\"https://canary.example/control.png\">";
    scene.open(&with_html("Control", html)).await;
    browser.wait_for_text_in_frame(css(FRAME), "Shown: control").await;
    browser.click(button("Show images from canary.example")).await;
    let requests = scene.canary.wait_for_requests(1).await;
    assert_eq!(requests[0].uri.path(), "/control.png");
    assert_eq!(requests.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn images_are_all_that_is_loaded_when_asked_for() {
    let scene = Scene::create().await;
    scene.open(&fixture("hostile/images")).await;
    scene.browser.wait_for_text_in_frame(css(FRAME), "Shown: images").await;
    scene.assert_unharmed("images").await;
    scene.browser.click(button("Show images from canary.example")).await;
    let expected = BTreeSet::from(["/pixel.png", "/plain.png", "/picture.png"].map(str::to_owned));
    let paths = eventually("all images are loaded", || async {
        let paths: BTreeSet<String> =
            scene.canary.requests().iter().map(|request| request.uri.path().to_owned()).collect();
        (paths.len() >= expected.len()).then_some(paths)
    })
    .await;
    assert_eq!(paths, expected);
    for request in scene.canary.requests() {
        for absent in ["cookie", "referer", "authorization"] {
            assert!(request.headers.get(absent).is_none(), "{absent}: {:?}", request.headers);
        }
    }
    assert_eq!(scene.browser.evaluate(RAN, vec![]).await, Value::Null);
}

/// HTML of this size, of a piece again and again.
fn filled_with(piece: &str, bytes: usize) -> String {
    format!("<p>Shown: large</p>\r\n{}", format!("{piece}\r\n").repeat(bytes / (piece.len() + 2)))
}

/// What costs most to show, by name.
pub(crate) fn large_mails() -> Vec<(&'static str, Vec<u8>)> {
    let cells = "<tr>".to_owned() + &"<td>cell</td>".repeat(60) + "</tr>";
    let pieces = [
        ("long text", format!("<p>{}</p>", "The quick brown fox jumps over the lazy dog. ".repeat(2))),
        ("deep nesting", "<div><blockquote><table><td>".to_owned()),
        ("one table", format!("<table>{cells}</table>")),
        ("many links", "<a href=\"https://canary.example/a\">https://bank.example/</a>".to_owned()),
        ("many images", "<img src=\"https://canary.example/a.png\" width=\"9999\">".to_owned()),
        ("many styles", "<b style=\"font-size:9999px;letter-spacing:999em\">x</b>".to_owned()),
        ("long words", format!("<pre>{}</pre>", "\u{200f}w\u{301}".repeat(120))),
    ];
    pieces.into_iter().map(|(name, piece)| (name, with_html(name, &filled_with(&piece, LARGE)))).collect()
}

/// Uses the switch of the theme; returns once the page shows another.
async fn switch_theme(browser: &Browser) {
    let shown = || browser.evaluate("return document.documentElement.dataset.theme ?? 'system'", vec![]);
    let before = shown().await;
    browser.click(css("button[aria-label^='Theme:']")).await;
    eventually("the theme is another", || async { (shown().await != before).then_some(()) }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_stays_usable_beside_the_largest_mails() {
    let scene = Scene::create().await;
    for (name, mail) in large_mails() {
        scene.open(&mail).await;
        scene.browser.wait_for(css(FRAME)).await;
        switch_theme(&scene.browser).await;
        scene.browser.click(tab("Headers")).await;
        scene.browser.wait_for(containing(".headers td", name)).await;
        scene.browser.click(tab("Text")).await;
        scene.browser.wait_for(css("[role=tabpanel]:not([hidden])")).await;
        scene.assert_unharmed(name).await;
        go_to(&scene.browser, "#/").await;
        scene.browser.wait_for_text("No message is open").await;
    }
}
