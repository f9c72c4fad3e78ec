//! Receivers that misbehave: each costs an attempt, and delays its own webhook only.

mod environment;
mod header_limits;

use std::net::{IpAddr, Ipv4Addr};

use reqwest::Method;
use tempmail_tests::dns::RebindingServer;
use tempmail_tests::receiver::{Identity, Reaction};
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Receiver, log};
use tokio::net::TcpListener;

use super::{first_attempts, outcome};
use crate::security::rows;

/// How long tempmail waits for a receiver. A busy machine must be able to serve a few dozen receivers in that
/// time.
const TIMEOUT_SECONDS: u64 = 6;

/// A tempmail whose timeout (30 s) is not reached on a busy machine.
async fn app() -> App {
    App::builder().receivers().start().await
}

/// A tempmail with a short timeout.
async fn app_with_short_timeout() -> App {
    App::builder()
        .receivers()
        .config(|config| config.webhooks.timeout_seconds = TIMEOUT_SECONDS)
        .start()
        .await
}

/// A receiver that reacts in one way only.
async fn receiver_with(reaction: Reaction) -> Receiver {
    let receiver = Receiver::start().await;
    receiver.react_with(reaction);
    receiver
}

/// Bytes that may be buffered between a receiver and a client that reads no more: far more than any socket
/// buffers.
const BUFFERED_MAX: usize = 64 << 20;

/// Asserts status and error of the first attempt at each receiver.
async fn assert_outcomes(receivers: &[(Receiver, i64, Option<&str>)], reactions: &[Reaction]) {
    let times_out = receivers.iter().any(|(.., error)| *error == Some("timeout"));
    let app = if times_out { app_with_short_timeout().await } else { app().await };
    let urls: Vec<String> = receivers.iter().map(|(receiver, ..)| receiver.url()).collect();
    let attempts = first_attempts(&app, &urls).await;
    for ((attempt, (_, status_code, error)), reaction) in attempts.iter().zip(receivers).zip(reactions) {
        let reaction: String = format!("{reaction:?}").chars().take(100).collect();
        assert_eq!(outcome(attempt), (*status_code, *error), "{reaction}: {attempt}");
    }
}

/// Asserts status and error of the first attempt for each reaction.
async fn assert_reactions(expected: Vec<(Reaction, i64, Option<&str>)>) -> Vec<Receiver> {
    let (mut receivers, mut reactions) = (Vec::new(), Vec::new());
    for (reaction, status_code, error) in expected {
        reactions.push(reaction.clone());
        receivers.push((receiver_with(reaction).await, status_code, error));
    }
    assert_outcomes(&receivers, &reactions).await;
    receivers.into_iter().map(|(receiver, ..)| receiver).collect()
}

fn raw(response: &str) -> Reaction {
    Reaction::RawBytes(response.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn records_2xx_as_success_and_other_statuses_as_http_status() {
    let failure = Some("http_status");
    let mut expected: Vec<_> = [200, 201, 202, 204, 206, 299]
        .map(|status| (Reaction::Status(status), i64::from(status), None))
        .to_vec();
    let failing = [300, 304, 400, 401, 404, 410, 418, 429, 500, 502, 503, 504, 599, 999];
    expected.extend(failing.map(|status| (Reaction::Status(status), i64::from(status), failure)));
    expected.extend([
        (raw("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"), 101, failure),
        (raw("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"), 204, None),
    ]);
    assert_reactions(expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn does_not_follow_redirects() {
    let (target, app) = (Receiver::start().await, app().await);
    let local = format!("https://127.0.0.1:{}/in", target.address().port());
    let (mut urls, mut receivers, mut statuses) = (Vec::new(), Vec::new(), Vec::new());
    for status in [301, 302, 303, 307, 308] {
        for location in [&target.url(), &local, "https://169.254.169.254/latest/meta-data/", "/in", "//x"] {
            let receiver =
                receiver_with(Reaction::StatusWithHeader(status, "location", location.to_owned())).await;
            urls.push(receiver.url());
            receivers.push(receiver);
            statuses.push(i64::from(status));
        }
    }
    for (attempt, status) in first_attempts(&app, &urls).await.iter().zip(statuses) {
        assert_eq!(outcome(attempt), (status, Some("http_status")), "{attempt}");
    }
    assert_eq!(target.connection_count(), 0);
    for receiver in receivers {
        assert!(receiver.requests().iter().all(|request| request.uri.path() == "/in"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn times_out_when_a_header_section_does_not_end() {
    let timeout = Some("timeout");
    assert_reactions(vec![
        (Reaction::Hang, 0, timeout),
        (Reaction::SilentConnection, 0, timeout),
        (raw("HTTP/1.1 200 OK\r\nX-Slow: "), 0, timeout),
        // The final response never comes.
        (raw("HTTP/1.1 103 Early Hints\r\n\r\n"), 0, timeout),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_a_status_whatever_follows_its_header_section() {
    let failure = Some("http_status");
    let end = |response: &str| Reaction::RawBytesAndEnd(response.to_owned());
    assert_reactions(vec![
        (end("HTTP/1.0 200 OK\r\n\r\n"), 200, None),
        (end("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart"), 200, None),
        (end("HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\nbeyond"), 204, None),
        (end("HTTP/1.0 404 Not Found\r\n\r\nnothing"), 404, failure),
        (end("HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\nff\r\npart"), 503, failure),
        (raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"), 200, None),
        (Reaction::TruncatedBody, 200, None),
        (Reaction::DrippingBody, 200, None),
        (Reaction::StalledBody(100), 200, None),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_the_beginning_of_a_body_only() {
    let receivers = assert_reactions(vec![(Reaction::EndlessBody, 200, None)]).await;
    assert!(receivers[0].body_bytes_sent() < BUFFERED_MAX);
}

#[tokio::test(flavor = "multi_thread")]
async fn records_broken_connections_and_invalid_responses_as_connection_failed() {
    let failure = Some("connection_failed");
    assert_reactions(vec![
        (raw("SSH-2.0-OpenSSH_9.9\r\n\r\n"), 0, failure),
        (raw("HTTP/1.1 20 OK\r\n\r\n"), 0, failure),
        (raw("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx"), 0, failure),
    ])
    .await;
}

/// With one address: if there were another, its outcome would be recorded.
#[tokio::test(flavor = "multi_thread")]
async fn records_a_reset_as_connection_failed() {
    let loopback: IpAddr = Ipv4Addr::LOCALHOST.into();
    let dns = RebindingServer::start(move |_, _| vec![loopback]).await;
    let servers = vec![dns.address()];
    let app = App::builder().receivers().config(|config| config.dns.servers = servers).start().await;
    let receiver = receiver_with(Reaction::ResetConnection).await;
    let url = receiver.url_for_host("receiver.guarded.example");
    let attempt = first_attempts(&app, &[url]).await.remove(0);
    assert_eq!(outcome(&attempt), (0, Some("connection_failed")), "{attempt}");
}

#[tokio::test(flavor = "multi_thread")]
async fn records_invalid_certificates_as_tls_failure_and_says_why() {
    let loopback = (Ipv4Addr::LOCALHOST, 0).into();
    let identities = [
        (Identity::expired(&["localhost"]), "expired"),
        (Identity::expired_authority(&["localhost"]), "expired"),
        (Identity::issued_for(&["other.example"]), "name_mismatch"),
        (Identity::issued_for(&["127.0.0.1"]), "name_mismatch"),
        (Identity::self_signed(&["localhost"]), "unknown_issuer"),
        (Identity::self_signed_authority(&["localhost"]), "unknown_issuer"),
    ];
    let mut receivers = vec![receiver_with(Reaction::PlainHttp).await];
    let mut details = vec!["handshake"];
    for (identity, detail) in &identities {
        receivers.push(Receiver::start_at(loopback, identity).await);
        details.push(detail);
    }
    let urls: Vec<String> = receivers.iter().map(Receiver::url).collect();
    let app = app().await;
    for (detail, attempt) in details.iter().zip(first_attempts(&app, &urls).await) {
        assert_eq!(outcome(&attempt), (0, Some("tls_failure")), "{detail}: {attempt}");
        assert_eq!(attempt["detail"], *detail, "{attempt}");
        let log = log::captured();
        let logged = |line: &&str| line.contains("TLS with the receiver") && line.contains(detail);
        assert!(log.lines().any(|line| logged(&line)), "{detail} is logged");
    }
    assert!(receivers.iter().all(|receiver| receiver.request_count() == 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn records_a_closed_port_as_connection_refused() {
    let app = app().await;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("https://localhost:{}/in", listener.local_addr().unwrap().port());
    drop(listener);
    let attempt = first_attempts(&app, &[url]).await.remove(0);
    assert_eq!(outcome(&attempt), (0, Some("connection_refused")), "{attempt}");
}

/// Delays after the first, second, … failure in seconds; each may be a fifth shorter or longer.
const DELAYS: [f64; 4] = [5.0, 30.0, 120.0, 600.0];

/// How much longer than usual the delay is.
const USUAL: (f64, f64) = (0.8, 1.2);

const TWICE: (f64, f64) = (1.6, 2.4);

/// Answers with each status and `Retry-After`, and compares the delays that follow with those that are expected. At most 16:
/// each gets one event.
async fn assert_delays(cases: &[(u16, &str, (f64, f64))]) {
    let reaction =
        |status: u16, value: &str| Reaction::StatusWithHeader(status, "retry-after", value.to_owned());
    let reactions = cases.iter().map(|(status, value, factor)| (reaction(*status, value), *value, *factor));
    assert_delays_after(reactions.collect()).await;
}

async fn assert_delays_after(cases: Vec<(Reaction, &str, (f64, f64))>) {
    let app = app().await;
    let mut receivers = Vec::new();
    for (reaction, ..) in &cases {
        receivers.push(receiver_with(reaction.clone()).await);
    }
    let urls: Vec<String> = receivers.iter().map(Receiver::url).collect();
    first_attempts(&app, &urls).await;
    for (url, (reaction, value, (least, most))) in urls.iter().zip(cases) {
        let statement = "SELECT e.attempts, extract(epoch FROM e.due_at - w.failed_at)::float8
                         FROM webhook w JOIN webhook_event e ON e.webhook = w.id WHERE w.url = $1 AND e.attempts > 0";
        let (failures, seconds): (i32, f64) = eventually(value, || async {
            sqlx::query_as(statement).bind(url).fetch_optional(&app.pool).await.unwrap()
        })
        .await;
        let delay = DELAYS[usize::try_from(failures).unwrap() - 1];
        assert!(
            (least..=most).contains(&(seconds / delay)),
            "{reaction:?}: {seconds} s after {failures} failures"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn delays_the_next_attempt_up_to_twice_the_usual_delay_and_never_shortens_it() {
    assert_delays(&[
        (503, "86400", TWICE),
        (429, "4294967295", TWICE),
        (429, "4294967296", TWICE),
        (503, "99999999999999999999999999999999", TWICE),
        (503, "0", USUAL),
        (429, "-1", USUAL),
        (503, "-99999999999999999999", USUAL),
        (429, "+86400", USUAL),
        (429, "1e9", USUAL),
        (503, "86400.5", USUAL),
        (503, "", USUAL),
        (429, "NaN", USUAL),
        // Other statuses are not honoured.
        (500, "86400", USUAL),
        (404, "86400", USUAL),
        (302, "86400", USUAL),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn takes_dates_in_all_three_forms_of_http() {
    assert_delays(&[
        (503, "Thu, 31 Dec 2099 23:59:59 GMT", TWICE),
        (429, "Friday, 31-Dec-49 23:59:59 GMT", TWICE),
        (503, "Thu Dec 31 23:59:59 2099", TWICE),
        (503, "Sun, 06 Nov 1994 08:49:37 GMT", USUAL),
        (503, "Sun, 06 Nov", USUAL),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn honours_the_field_of_an_answer_whose_body_is_cut() {
    let cut = "HTTP/1.1 503 Busy\r\nRetry-After: 86400\r\nContent-Length: 100\r\n\r\npart";
    assert_delays_after(vec![(Reaction::RawBytesAndEnd(cut.to_owned()), "86400", TWICE)]).await;
}

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
