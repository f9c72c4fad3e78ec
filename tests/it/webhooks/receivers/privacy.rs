//! Nothing that a receiver sends is stored, shown or logged.

use std::net::Ipv4Addr;

use reqwest::Method;
use tempmail_tests::receiver::{Identity, Reaction};
use tempmail_tests::{Receiver, log};

use super::{app_with_short_timeout, receiver_with};
use crate::security::at_rest::rows;
use crate::webhooks::first_attempts;

/// In every part of the responses.
const WORD: &str = "plotka";

#[tokio::test(flavor = "multi_thread")]
async fn keeps_nothing_of_a_response() {
    let app = app_with_short_timeout().await;
    let fields = "Content-Length: 12\r\nX-Said: plotka-field\r\nPlotka: 1\r\nSet-Cookie: plotka-cookie=1\r\n\r\nplotka-body!";
    let mut receivers = Vec::new();
    for response in [
        format!("HTTP/1.1 200 plotka-reason\r\n{fields}"),
        format!("HTTP/1.1 404 plotka-reason\r\n{fields}"),
        format!("HTTP/1.1 500 plotka-reason\r\n{fields}"),
        format!("HTTP/1.1 302 plotka-reason\r\nLocation: https://plotka.example/\r\n{fields}"),
        format!("HTTP/1.1 429 plotka-reason\r\nRetry-After: plotka-later\r\n{fields}"),
        "HTTP/1.1 200 plotka-reason\r\nContent-Length: plotka-length\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nplotka-chunk\r\n".to_owned(),
        "plotka-protocol\r\n\r\n".to_owned(),
    ] {
        receivers.push(receiver_with(Reaction::RawBytes(response)).await);
    }
    for identity in [Identity::issued_for(&["plotka.example"]), Identity::self_signed(&["plotka.example"])] {
        receivers.push(Receiver::start_at((Ipv4Addr::LOCALHOST, 0).into(), &identity).await);
    }
    let urls: Vec<String> = receivers.iter().map(Receiver::url).collect();
    let attempts = first_attempts(&app, &urls).await;
    let listed = app.request(Method::GET, "/pro/api/webhooks").bearer(&app.tenant.pro).send().await;
    let stored = rows(&app.pool).await;
    assert!(
        stored.contains("webhook_delivery_") && stored.contains("connection_failed"),
        "the search finds attempts"
    );
    let log = log::captured();
    for (source, text) in [
        ("the attempts", format!("{attempts:?}")),
        ("the webhooks", listed.text()),
        ("the database", stored),
        ("the log", log),
    ] {
        let line = text.lines().find(|line| line.to_lowercase().contains(WORD));
        assert!(line.is_none(), "in {source}: {line:?}");
    }
}
