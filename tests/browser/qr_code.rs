//! The QR code of an address, beside those of another encoder. `fixtures/qr-codes.json` was made by python-qrcode 8.2: byte
//! mode, error correction M, one code each of the versions 3, 4, 7 and 10.

use serde::Deserialize;
use serde_json::Value;
use tempmail_tests::Browser;
use tempmail_tests::browser::{button, css, dialog};

use crate::{assert_no_alarm, service, sign_in_to};

/// Modules of light around a code.
const QUIET: usize = 4;

/// A text, and its code in lines of `0` (light) and `1` (dark).
#[derive(Deserialize)]
struct Code {
    text: String,
    modules: Vec<String>,
}

fn codes() -> Vec<Code> {
    serde_json::from_str(include_str!("../fixtures/qr-codes.json")).unwrap()
}

/// The dark modules as the path of an SVG.
fn path(modules: &[String]) -> String {
    let squares = modules.iter().enumerate().flat_map(|(row, line)| {
        line.char_indices().filter(|&(_, module)| module == '1').map(move |(column, _)| (column, row))
    });
    squares.map(|(column, row)| format!("M{} {}h1v1h-1z", column + QUIET, row + QUIET)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn is_that_of_the_address() {
    let (app, browser) = (service().await, Browser::start().await);
    let mailbox = app.mailbox(None, "boat@inbox.localhost").await;
    sign_in_to(&browser, &app, &mailbox).await;
    browser.click(button("QR code")).await;
    browser.wait_for(dialog("QR code")).await;
    browser.wait_for(css("svg.qr")).await;
    let script = "const code = document.querySelector('svg.qr');
        return [code.getAttribute('viewBox'), code.querySelector('path').getAttribute('d')]";
    let shown = browser.evaluate(script, vec![]).await;
    let code = codes().into_iter().find(|code| code.text == "mailto:boat@inbox.localhost").unwrap();
    let size = code.modules.len() + 2 * QUIET;
    assert_eq!(shown[0], format!("0 0 {size} {size}"));
    assert_eq!(shown[1], path(&code.modules));
    assert_no_alarm(&browser).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn is_that_of_another_encoder_for_texts_of_each_length() {
    let (app, browser) = (service().await, Browser::start().await);
    browser.open(&app.url("/")).await;
    for code in codes() {
        let expression = format!(
            "import('/page/qr/encoder.js').then(({{ encode }}) =>
                encode({}).map((line) => line.map((isDark) => (isDark ? 1 : 0)).join('')))",
            Value::from(code.text.as_str())
        );
        assert_eq!(browser.evaluate_async(&expression).await, Value::from(code.modules), "{}", code.text);
    }
}
