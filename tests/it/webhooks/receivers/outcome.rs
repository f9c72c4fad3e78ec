//! One word for each way of failing.

use std::net::{IpAddr, Ipv4Addr};

use tempmail_tests::dns::RebindingServer;
use tempmail_tests::receiver::{Identity, Reaction};
use tempmail_tests::{App, Receiver};
use tokio::net::TcpListener;

use super::{impatient, reacting};
use crate::webhooks::{first_attempts, outcome};

/// Octets of an answer that are read.
const ANSWER_MAX: usize = 16 << 10;
/// Octets that wait between a receiver that writes and one who reads no more, at most: far more than
/// any socket has.
const ON_THE_WAY: usize = 64 << 20;

/// What is recorded of the first attempt at each receiver.
async fn assert_outcomes(receivers: &[(Receiver, i64, Option<&str>)], reactions: &[Reaction]) {
    let app = impatient().await;
    let urls: Vec<String> = receivers.iter().map(|(receiver, ..)| receiver.url()).collect();
    let attempts = first_attempts(&app, &urls).await;
    for ((attempt, (_, status_code, error)), reaction) in attempts.iter().zip(receivers).zip(reactions) {
        let told = format!("{reaction:?}").chars().take(100).collect::<String>();
        assert_eq!(outcome(attempt), (*status_code, *error), "{told}: {attempt}");
    }
}

async fn assert_reactions(expected: Vec<(Reaction, i64, Option<&str>)>) -> Vec<Receiver> {
    let (mut receivers, mut reactions) = (Vec::new(), Vec::new());
    for (reaction, status_code, error) in expected {
        reactions.push(reaction.clone());
        receivers.push((reacting(reaction).await, status_code, error));
    }
    assert_outcomes(&receivers, &reactions).await;
    receivers.into_iter().map(|(receiver, ..)| receiver).collect()
}

fn raw(octets: &str) -> Reaction {
    Reaction::RawBytes(octets.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_2xx_is_a_success_and_every_other_status_a_failure() {
    let failure = Some("http_status");
    let mut expected: Vec<_> = [200, 201, 202, 204, 206, 299]
        .map(|status| (Reaction::Status(status), i64::from(status), None))
        .to_vec();
    let failing = [300, 304, 400, 401, 404, 410, 418, 429, 500, 502, 503, 504, 599, 999];
    expected.extend(failing.map(|status| (Reaction::Status(status), i64::from(status), failure)));
    expected.extend([
        (raw("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"), 101, failure),
        (raw("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"), 204, None),
        // The answer that a hint comes before never does.
        (raw("HTTP/1.1 103 Early Hints\r\n\r\n"), 0, Some("timeout")),
    ]);
    assert_reactions(expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_are_failures_and_never_followed() {
    let (target, app) = (Receiver::start().await, impatient().await);
    let local = format!("https://127.0.0.1:{}/in", target.address().port());
    let (mut urls, mut receivers, mut statuses) = (Vec::new(), Vec::new(), Vec::new());
    for status in [301, 302, 303, 307, 308] {
        for location in [&target.url(), &local, "https://169.254.169.254/latest/meta-data/", "/in", "//x"] {
            let receiver =
                reacting(Reaction::StatusWithHeader(status, "location", location.to_owned())).await;
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
async fn who_never_ends_costs_the_time_of_one_delivery() {
    let timeout = Some("timeout");
    assert_reactions(vec![
        (Reaction::Hang, 0, timeout),
        (Reaction::SilentConnection, 0, timeout),
        (Reaction::DrippingBody, 0, timeout),
        (raw("HTTP/1.1 200 OK\r\nX-Slow: "), 0, timeout),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_an_answer_16_kib_are_read() {
    let receivers = assert_reactions(vec![
        (Reaction::EndlessBody, 200, None),
        // Nothing is waited for beyond them, and all of a shorter one is.
        (Reaction::StalledBody(ANSWER_MAX), 200, None),
        (Reaction::StalledBody(ANSWER_MAX - 1), 0, Some("timeout")),
    ])
    .await;
    let taken = receivers[0].body_bytes_sent();
    assert!((ANSWER_MAX..ON_THE_WAY).contains(&taken), "{taken}");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_break_and_answers_that_are_none_are_connection_failed() {
    let failure = Some("connection_failed");
    let fields = format!("HTTP/1.1 200 OK\r\nX-Long: {}\r\n\r\n", "x".repeat(1 << 20));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X-Many: 1\r\n".repeat(10_000));
    assert_reactions(vec![
        (Reaction::TruncatedBody, 0, failure),
        (raw("SSH-2.0-OpenSSH_9.9\r\n\r\n"), 0, failure),
        (raw("HTTP/1.1 20 OK\r\n\r\n"), 0, failure),
        (raw("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx"), 0, failure),
        (raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"), 0, failure),
        (raw(&fields), 0, failure),
        (raw(&many), 0, failure),
    ])
    .await;
}

/// By a name with one address: where another one is tried after it, that one's end counts.
#[tokio::test(flavor = "multi_thread")]
async fn a_reset_is_connection_failed() {
    let here: IpAddr = Ipv4Addr::LOCALHOST.into();
    let dns = RebindingServer::start(move |_, _| vec![here]).await;
    let servers = vec![dns.address()];
    let app = App::builder().receivers().config(|config| config.dns.servers = servers).start().await;
    let receiver = reacting(Reaction::ResetConnection).await;
    let url = receiver.url_for_host("receiver.guarded.example");
    let attempt = first_attempts(&app, &[url]).await.remove(0);
    assert_eq!(outcome(&attempt), (0, Some("connection_failed")), "{attempt}");
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_that_do_not_vouch_for_the_name_are_tls_failures() {
    let loopback = (Ipv4Addr::LOCALHOST, 0).into();
    let identities = [
        Identity::expired(&["localhost"]),
        Identity::issued_for(&["other.example"]),
        Identity::issued_for(&["127.0.0.1"]),
        Identity::self_signed(&["localhost"]),
    ];
    let mut receivers = vec![reacting(Reaction::PlainHttp).await];
    for identity in &identities {
        receivers.push(Receiver::start_at(loopback, identity).await);
    }
    let urls: Vec<String> = receivers.iter().map(Receiver::url).collect();
    let app = impatient().await;
    for (index, attempt) in first_attempts(&app, &urls).await.iter().enumerate() {
        assert_eq!(outcome(attempt), (0, Some("tls_failure")), "{index}: {attempt}");
    }
    assert!(receivers.iter().all(|receiver| receiver.request_count() == 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_where_nobody_listens_is_connection_refused() {
    let app = impatient().await;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("https://localhost:{}/in", listener.local_addr().unwrap().port());
    drop(listener);
    let attempt = first_attempts(&app, &[url]).await.remove(0);
    assert_eq!(outcome(&attempt), (0, Some("connection_refused")), "{attempt}");
}
