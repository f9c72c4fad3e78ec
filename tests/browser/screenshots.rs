//! The images of `docs/images`: each page in both themes, on a wide screen and on a phone. `./tests/run screenshots`
//! takes them again. What they look like is for people to judge; a test knows when the page has changed since.

use std::path::{Path, PathBuf};

use reqwest::Method;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tempmail_tests::browser::{Theme, button, css, heading, tab};
use tempmail_tests::{App, Browser, Receiver, TestDns};

use crate::dashboard::open_section;
use crate::mail::with_attachment;
use crate::{deliver_as_is, row, service, sign_in_as, sign_in_to};

/// Beside the images: the hash of the page that they show.
const HASH_FILE: &str = "page.sha256";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are in the workspace")
}

fn images() -> PathBuf {
    root().join("docs/images")
}

/// Every screenshot is of one of these, each in both themes and at both widths.
const VIEWS: [&str; 10] = [
    "welcome",
    "inbox",
    "message",
    "sign-in",
    "everything",
    "mailboxes",
    "domains",
    "webhooks",
    "tokens",
    "usage",
];
const THEMES: [Theme; 2] = [Theme::Light, Theme::Dark];
const SIZES: [(u32, u32); 2] = [(1440, 900), (390, 844)];

/// A promise of the next frame, which has the new size.
const NEXT_FRAME: &str = "new Promise((done) => requestAnimationFrame(() => setTimeout(done)))";

fn file_name(view: &str, theme: Theme, width: u32) -> String {
    format!("{view}-{}-{width}.png", theme.name())
}

/// The SHA-256 of all files of the page and their names, in hexadecimal.
fn hash_of_the_page() -> String {
    let folder = root().join("api-server/page");
    let mut files = Vec::new();
    list_files(&folder, &mut files);
    files.sort();
    assert!(files.len() > 50, "the page is there");
    let mut hash = Sha256::new();
    for file in files {
        let name = file.strip_prefix(&folder).expect("it was found there").to_str().expect("names are ASCII");
        let content = std::fs::read(&file).expect("the file can be read");
        hash.update(format!("{name} {}\n", content.len()));
        hash.update(content);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn list_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            list_files(&path, files);
        } else {
            files.push(path);
        }
    }
}

#[test]
fn are_of_the_page_as_it_is() {
    let recorded = std::fs::read_to_string(images().join(HASH_FILE)).unwrap_or_default();
    assert_eq!(recorded.trim(), hash_of_the_page(), "stale: ./tests/run screenshots, and look at them");
    for view in VIEWS {
        for theme in THEMES {
            for (width, _) in SIZES {
                let name = file_name(view, theme, width);
                assert!(images().join(&name).exists(), "docs/images/{name} is missing");
            }
        }
    }
}

#[test]
fn that_documents_show_exist() {
    for document in ["README.md", "docs/web-page.md"] {
        let text = std::fs::read_to_string(root().join(document)).unwrap();
        let known: Vec<String> = VIEWS
            .iter()
            .flat_map(|view| THEMES.map(|theme| SIZES.map(|(width, _)| file_name(view, theme, width))))
            .flatten()
            .collect();
        let mut shown = 0;
        for (_, after) in text.match_indices("images/").map(|(at, found)| text.split_at(at + found.len())) {
            let name = after.split_inclusive(".png").next().unwrap();
            assert!(known.iter().any(|known| known == name), "{document} shows {name}");
            shown += 1;
        }
        assert!(shown > 0, "{document} shows the page");
    }
}

/// Takes the screenshots of a view, with the pointer over nothing.
async fn take(browser: &Browser, view: &str) {
    let corner = json!({ "type": "mouseMoved", "x": 0, "y": 0 });
    browser.cdp("Input.dispatchMouseEvent", corner).await;
    for theme in THEMES {
        for (width, height) in SIZES {
            browser.show_as(width, height, theme).await;
            browser.evaluate_async(NEXT_FRAME).await;
            let image = browser.screenshot().await;
            std::fs::write(images().join(file_name(view, theme, width)), image).unwrap();
        }
    }
    browser.show_as(1440, 900, Theme::Light).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes docs/images: ./tests/run screenshots"]
async fn takes_them_again() {
    std::fs::create_dir_all(images()).unwrap();
    take_the_inbox().await;
    take_the_dashboard().await;
    std::fs::write(images().join(HASH_FILE), format!("{}\n", hash_of_the_page())).unwrap();
}

/// Mail of an ordinary day.
const MAIL: [(&str, &str); 5] = [
    ("Welcome aboard", "Your account is ready. Here is how to begin."),
    ("Your order has been shipped", "It is on its way, and will be with you on Thursday."),
    ("Reset your password", "Somebody asked for a new password. If it was not you, do nothing."),
    ("Build 1042 passed", "All 812 tests passed in 6 minutes."),
    ("Your code is 471108", "Enter it within ten minutes."),
];

async fn take_the_inbox() {
    let (app, browser) = (service().await, Browser::start().await);
    browser.show_as(1440, 900, Theme::Light).await;
    browser.open(&app.url("/")).await;
    browser.wait_for(button("Get a random address")).await;
    take(&browser, "welcome").await;
    let mailbox = app.mailbox(None, "quiet-harbor-4821@inbox.localhost").await;
    for (subject, text) in MAIL {
        app.deliver(&mailbox.address, subject, text).await;
    }
    let html = "<h2>The engine is here</h2>\
                <p>It weaves algebraic patterns, just as the loom weaves flowers and leaves.</p>\
                <p><a href=\"https://client.example/report\">Read the report</a></p>\
                <img src=\"https://cdn.example/logo.png\">";
    deliver_as_is(&app, &mailbox.address, &with_attachment(html)).await;
    sign_in_to(&browser, &app, &mailbox).await;
    browser.wait_for(row("The engine")).await;
    take(&browser, "inbox").await;
    browser.click(row("The engine")).await;
    browser.wait_for_text_in_frame(css(".mail-frame"), "The engine is here").await;
    take(&browser, "message").await;
}

async fn take_the_dashboard() {
    let dns = TestDns::start().await;
    dns.domain("mail.test", 1).await;
    let app = App::builder().dns(&dns).receivers().browsable().start().await;
    let (receiver, browser) = (Receiver::start().await, Browser::start().await);
    furnish(&app, &receiver).await;
    browser.show_as(1440, 900, Theme::Light).await;
    browser.open(&app.url("/dashboard")).await;
    browser.wait_for(heading("Sign in to the dashboard")).await;
    take(&browser, "sign-in").await;
    sign_in_as(&browser, &app, &app.tenant.pro).await;
    browser.wait_for(row(MAIL[0].0)).await;
    take(&browser, "everything").await;
    for (view, section, shown) in [
        ("mailboxes", "Mailboxes", ".meter"),
        ("domains", "Domains", ".record"),
        ("webhooks", "Webhooks", ".chart svg"),
        ("tokens", "Tokens", ".row"),
        ("usage", "Usage", ".meter"),
    ] {
        open_section(&browser, section).await;
        browser.wait_for(css(shown)).await;
        if section == "Webhooks" {
            browser.wait_for(tab("Python")).await;
        }
        take(&browser, view).await;
    }
}

/// Gives the tenant what a company has.
async fn furnish(app: &App, receiver: &Receiver) {
    for name in ["orders", "signup", "ci"] {
        app.mailbox(Some(&app.tenant.pro), &format!("{name}@inbox.localhost")).await;
    }
    app.custom_domain(&app.tenant, "ships.example").await;
    app.domain(&app.tenant, "mail.test").await;
    for (path, body) in [
        ("/pro/api/webhooks", json!({ "url": receiver.url(), "events": ["email.received"] })),
        ("/pro/api/tokens", json!({ "name": "build server", "kind": "live", "expires_in_days": 90 })),
    ] {
        let request = app.request(Method::POST, path).bearer(&app.tenant.pro);
        assert_eq!(request.json(&body).send().await.status, 201);
    }
    for (number, (subject, text)) in MAIL.iter().enumerate().rev() {
        let address = ["orders", "signup", "ci"][number % 3];
        app.deliver(&format!("{address}@inbox.localhost"), subject, text).await;
    }
    receiver.wait_for_requests(MAIL.len()).await;
}
