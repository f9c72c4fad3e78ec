//! Many clients that are idle, or have sent half a mail: others are served, and memory is bounded.

mod chaos;

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use tempmail_tests::binary::UpInstallation;
use tempmail_tests::wait::within_deadline;
use tempmail_tests::{Binary, SmtpClient, send_mail, smtp};

/// An installation that accepts all clients, however slowly they connect.
fn start(installation: &UpInstallation) -> Binary {
    installation.up(&[
        ("TEMPMAIL_SMTP__CONNECTIONS", "20000"),
        // Servers share the limit on open files by their limits on connections.
        ("TEMPMAIL_HTTP__CONNECTIONS", "1000"),
        ("TEMPMAIL_TUNING", r#"{"smtp": {"command_seconds": 3600}}"#),
    ])
}

async fn connect_all(server: SocketAddr, clients: usize) -> Vec<SmtpClient> {
    let connect = stream::iter(0..clients).map(|_| SmtpClient::connect(server)).buffer_unordered(64);
    within_deadline("all clients are connected", connect.collect()).await
}

async fn send_half_mails(server: SocketAddr, clients: usize) -> Vec<SmtpClient> {
    let send = |i: usize| async move {
        let mut client = SmtpClient::connect_with_ehlo(server).await;
        client.expect_positive("MAIL FROM:<a@client.example>").await;
        client.expect_positive(&format!("RCPT TO:<half{i}@inbox.localhost>")).await;
        client.expect_positive("DATA").await;
        client.send(format!("Subject: half {i}\r\n\r\n{}", "half a line ".repeat(100))).await;
        client
    };
    let send_all = stream::iter(0..clients).map(send).buffer_unordered(64);
    within_deadline("all half mails are sent", send_all.collect()).await
}

async fn assert_accepts_mail(server: SocketAddr) {
    let message = smtp::message("a@client.example", "served", "");
    let reply = send_mail(server, "a@client.example", "other@inbox.localhost", &message).await;
    assert_eq!(reply.code, 250, "{reply:?}");
}

/// Asserts that idle clients stay connected while others are served. Returns the memory of each, in
/// bytes.
async fn hold_idle_clients(clients: usize) -> u64 {
    let installation = UpInstallation::new();
    let server = start(&installation);
    assert_accepts_mail(installation.smtp).await;
    let before = server.resident_bytes();
    let mut idle = connect_all(installation.smtp, clients).await;
    assert_accepts_mail(installation.smtp).await;
    let each = server.resident_bytes().saturating_sub(before) / clients as u64;
    for client in idle.iter_mut().step_by(50) {
        client.expect_positive("NOOP").await;
    }
    each
}

/// Asserts that half mails are not stored, and that others are served meanwhile. Returns the memory of
/// each, in bytes.
async fn hold_half_mails(clients: usize) -> u64 {
    let installation = UpInstallation::new();
    let server = start(&installation);
    assert_accepts_mail(installation.smtp).await;
    let before = server.resident_bytes();
    let half = send_half_mails(installation.smtp, clients).await;
    assert_accepts_mail(installation.smtp).await;
    let each = server.resident_bytes().saturating_sub(before) / clients as u64;
    drop(half);
    assert_accepts_mail(installation.smtp).await;

    let token = installation.credentials()["live_token"].as_str().unwrap().to_owned();
    let url = format!("http://{}/v1/inbox/half7@inbox.localhost", installation.http);
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(2)).build().unwrap();
    let answer = client.get(url).header("x-api-token", token).send().await;
    assert!(answer.is_err_and(|error| error.is_timeout()), "the long-poll finds no mail");
    each
}

#[tokio::test(flavor = "multi_thread")]
async fn serves_others_while_clients_are_idle() {
    hold_idle_clients(200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn serves_others_while_mails_are_half_sent() {
    hold_half_mails(200).await;
}
