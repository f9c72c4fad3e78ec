//! Webhooks: their secrets, what was delivered, and code that checks it.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use reqwest::Method;
use serde_json::json;
use tempmail_tests::browser::{button, containing, css, dialog, heading, tab, textbox};
use tempmail_tests::receiver::ReceivedRequest;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Browser, Receiver};

use super::{open_section, shown_secret};
use crate::sign_in_as;

const DOCUMENT: &str = include_str!("../../../docs/webhooks.md");

/// What follows a sample to run it on a request: the program that takes it, and the code.
const JAVASCRIPT: (&str, &[&str], &str) = (
    "node",
    &["--input-type=module", "--eval"],
    "import { readFileSync } from \"node:fs\";
     console.log(isGenuine(JSON.parse(process.env.FIELDS), readFileSync(0)));",
);
const PYTHON: (&str, &[&str], &str) = (
    "python3",
    &["-c"],
    "import json, sys
fields = json.loads(os.environ[\"FIELDS\"])
print(is_genuine({name.title(): fields[name] for name in fields}, sys.stdin.buffer.read()))",
);

/// The code that the dashboard shows in a language.
async fn sample(browser: &Browser, language: &str) -> String {
    browser.click(tab(language)).await;
    let selector = format!(".guide [role=tabpanel]:not([hidden]) pre[aria-label='{language}']");
    browser.wait_for(css(&selector)).await;
    let script = "return document.querySelector(arguments[0]).textContent";
    browser.evaluate(script, vec![selector.into()]).await.as_str().unwrap().to_owned()
}

/// What a sample says of a request with this body.
fn judge(
    sample: &str,
    (program, arguments, rest): (&str, &[&str], &str),
    secret: &str,
    request: &ReceivedRequest,
    body: &[u8],
) -> String {
    let fields: BTreeMap<&str, &str> =
        request.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    let mut child = Command::new(program)
        .args(arguments)
        .arg(format!("{sample}\n{rest}"))
        .env("WEBHOOK_SECRET", secret)
        .env("FIELDS", serde_json::to_string(&fields).unwrap())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    child.stdin.take().unwrap().write_all(body).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{program} failed");
    String::from_utf8(output.stdout).unwrap().trim().to_lowercase()
}

/// The languages of the sample code.
const TABS: &str = "return [...document.querySelectorAll('.guide [role=tab]')].map((tab) => tab.textContent)";

#[tokio::test(flavor = "multi_thread")]
async fn creates_a_webhook_shows_its_deliveries_and_rotates_its_secret() {
    let app = App::builder().receivers().browsable().start().await;
    let (receiver, browser) = (Receiver::start().await, Browser::start().await);
    app.mailbox(Some(&app.tenant.pro), "quay@inbox.localhost").await;
    sign_in_as(&browser, &app, &app.tenant.pro).await;
    open_section(&browser, "Webhooks").await;
    browser.wait_for(heading("No webhook yet")).await;
    browser.click(button("New webhook")).await;
    browser.fill(textbox("URL"), "http://hooks.example/").await;
    browser.click(button("New webhook")).await;
    browser.wait_for_text("This URL cannot be used.").await;
    browser.fill(textbox("URL"), &receiver.url()).await;
    browser.click(button("New webhook")).await;
    browser.wait_for(dialog("The webhook was created.")).await;
    let first = shown_secret(&browser).await;
    browser.click(button("I have stored it")).await;
    browser.wait_until_gone(dialog("The webhook was created.")).await;
    browser.wait_for(heading(&receiver.url())).await;
    browser.wait_for_text("Nothing was sent yet.").await;

    app.deliver("quay@inbox.localhost", "One", "").await;
    assert!(receiver.wait_for_requests(1).await[0].is_signed_by(&first));
    // Read again by itself after mail came.
    browser.wait_for(containing("td", "Delivered (204)")).await;
    browser.wait_for(css(".chart svg")).await;

    browser.click(button(&format!("Rotate the secret of {}", receiver.url()))).await;
    browser.wait_for(dialog("Rotate the secret?")).await;
    browser.click(button("Rotate secret")).await;
    browser.wait_for(dialog("The webhook has a new secret.")).await;
    let second = shown_secret(&browser).await;
    browser.click(button("I have stored it")).await;
    assert_ne!(first, second);
    app.deliver("quay@inbox.localhost", "Two", "").await;
    assert!(receiver.wait_for_requests(2).await[1].is_signed_by(&second));
    eventually("both attempts are in the table", || async {
        let rows = browser.evaluate("return document.querySelectorAll('tbody tr').length", vec![]).await;
        (rows == 2).then_some(())
    })
    .await;

    browser.click(button(&format!("Delete the webhook {}", receiver.url()))).await;
    browser.wait_for(dialog("Delete this webhook?")).await;
    browser.click(button("Delete")).await;
    browser.wait_for(heading("No webhook yet")).await;
    assert!(!browser.text().await.contains(&second));
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_what_a_request_has_and_code_that_tells_a_genuine_one() {
    let app = App::builder().receivers().browsable().start().await;
    let (receiver, browser) = (Receiver::start().await, Browser::start().await);
    app.mailbox(Some(&app.tenant.pro), "quay@inbox.localhost").await;
    let body = json!({ "url": receiver.url(), "events": ["email.received"] });
    let created = app.request(Method::POST, "/pro/api/webhooks").bearer(&app.tenant.pro).json(&body).send();
    let secret = created.await.expect(201)["secret"].as_str().unwrap().to_owned();
    app.deliver("quay@inbox.localhost", "One", "").await;
    let request = receiver.wait_for_requests(1).await.remove(0);

    sign_in_as(&browser, &app, &app.tenant.pro).await;
    open_section(&browser, "Webhooks").await;
    browser.wait_for(containing("pre", "\"email.received\"")).await;
    assert_eq!(browser.evaluate(TABS, vec![]).await, json!(["JavaScript", "Python", "Go"]));
    for (language, program) in [("JavaScript", JAVASCRIPT), ("Python", PYTHON)] {
        let sample = sample(&browser, language).await;
        assert_eq!(judge(&sample, program, &secret, &request, &request.body), "true", "{language}");
        let altered = [&request.body[..], b" "].concat();
        assert_eq!(judge(&sample, program, &secret, &request, &altered), "false", "{language}");
        assert_eq!(judge(&sample, program, "whsec_other", &request, &request.body), "false", "{language}");
    }
    // The document's sample in Go is compiled and run where Go is installed.
    let sample = sample(&browser, "Go").await;
    let (_secret, function) = sample.split_once("\n\n").unwrap();
    assert!(DOCUMENT.contains(function.trim()), "{function}");
}
