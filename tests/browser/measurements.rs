//! How fast the page is, in numbers for people: no test asserts on speed.
//!
//! `cargo test --test browser -- --ignored --nocapture --test-threads 1 measurements::`, after `./tests/run browser`

#![expect(clippy::print_stdout, reason = "the numbers are for the reader")]

use std::time::Instant;

use nix::sys::signal::Signal;
use tempmail_tests::Browser;
use tempmail_tests::binary::UpInstallation;
use tempmail_tests::browser::{button, css};
use tempmail_tests::wait::eventually;

use crate::hostile::large_mails;
use crate::restart::deliver;
use crate::weight::bytes_of;
use crate::{deliver_as_is, go_to, newest_id, row, service, shown_address, sign_in_to, wait_until_live};

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
async fn from_the_250_of_a_mail_to_its_row_before_and_after_a_restart() {
    let installation = UpInstallation::new();
    let browser = Browser::start().await;
    let mut address = None;
    for state in ["first start", "restart"] {
        let mut server = tokio::task::block_in_place(|| installation.up(&[]));
        if address.is_none() {
            browser.open(&format!("http://{}/", installation.http)).await;
            browser.click(button("Get a random address")).await;
            address = Some(shown_address(&browser).await);
            wait_until_live(&browser).await;
        }
        // After the restart the first one comes before the page is connected again.
        for number in 0..10 {
            let subject = format!("Mail {number} after the {state}");
            deliver(&installation, address.as_deref().unwrap(), &subject).await;
            let accepted = Instant::now();
            browser.wait_for(row(&subject)).await;
            println!("{subject}: {} ms", accepted.elapsed().as_millis());
        }
        server.signal(Signal::SIGTERM);
        tokio::task::block_in_place(|| server.wait());
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn of_bytes_that_each_page_loads() {
    let app = service().await;
    for path in ["/", "/dashboard"] {
        println!("{path}: {} bytes, header fields included", bytes_of(&app, path).await);
    }
}
