//! How fast the page is, in numbers for people: no test asserts on speed.
//!
//! `cargo test --test browser -- --ignored --nocapture measurements::`, after `./tests/run browser`

#![expect(clippy::print_stdout, reason = "the numbers are for the reader")]

use tempmail_tests::Browser;
use tempmail_tests::browser::{css, heading};
use tempmail_tests::wait::eventually;

use crate::hostile::large_mails;
use crate::{deliver_as_is, go_to, newest_id, row, service, sign_in_to, take_address, wait_until_live};

/// Makes `nextClick` a promise of the milliseconds from the next click to the frame that follows it.
const NEXT_CLICK: &str = r#"
globalThis.nextClick = new Promise((done) => {
  const framed = ({ timeStamp }) =>
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - timeStamp)));
  addEventListener("click", framed, { once: true, capture: true });
});
0"#;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn from_a_click_to_the_next_frame_beside_the_largest_mails() {
    let (app, browser) = (service().await, Browser::start().await);
    let mailbox = app.mailbox(None, "boat@inbox.localhost").await;
    sign_in_to(&browser, &app, &mailbox).await;
    for (name, mail) in large_mails() {
        deliver_as_is(&app, &mailbox.address, &mail).await;
        go_to(&browser, &format!("#/message/{}", newest_id(&app, &mailbox).await)).await;
        browser.wait_for(css(".mail-frame")).await;
        let mut slowest = 0.0_f64;
        for _ in 0..10 {
            browser.evaluate_async(NEXT_CLICK).await;
            browser.click(css("button[aria-label^='Theme:']")).await;
            let milliseconds = browser.evaluate_async("nextClick").await;
            slowest = slowest.max(milliseconds.as_f64().unwrap());
        }
        println!("{name}: {slowest:.0} ms at most");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn from_the_request_to_the_first_paint() {
    let app = service().await;
    for path in ["/", "/dashboard"] {
        let browser = Browser::start().await;
        browser.open(&app.url(path)).await;
        browser.wait_for(css("h1")).await;
        let paint = eventually("the page is painted", || async {
            let paint = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null";
            browser.evaluate_async(paint).await.as_f64()
        })
        .await;
        println!("{path}: {paint:.0} ms");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn from_the_250_of_a_mail_to_its_row() {
    let (app, browser) = (service().await, Browser::start().await);
    let address = take_address(&browser, &app).await;
    wait_until_live(&browser).await;
    browser.wait_for(heading("Waiting for mail")).await;
    for number in 0..10 {
        let subject = format!("Mail {number}.");
        app.deliver(&address, &subject, "").await;
        let accepted = std::time::Instant::now();
        browser.wait_for(row(&subject)).await;
        println!("{subject} {} ms", accepted.elapsed().as_millis());
    }
}
