//! The outcome that is recorded for each behaviour of a receiver.

use std::net::{IpAddr, Ipv4Addr};

use tempmail_tests::dns::RebindingServer;
use tempmail_tests::receiver::{Identity, Reaction};
use tempmail_tests::{App, Receiver, log};
use tokio::net::TcpListener;

use super::{app, app_with_short_timeout, receiver_with};
use crate::webhooks::{first_attempts, outcome};

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
