//! Ten thousand clients that do nothing, or half of something: served on, memory bounded.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use tempmail_tests::binary::Installation;
use tempmail_tests::wait::within_deadline;
use tempmail_tests::{Binary, SmtpClient, send_mail, smtp};

use crate::descriptors::Many;

const CLIENTS: usize = 10_000;

/// A server that stays for all of them.
fn start(installation: &Installation) -> Binary {
    installation.up(&[("TEMPMAIL_SMTP__CONNECTIONS", "20000")])
}

async fn open(server: SocketAddr, clients: usize, half_mail: bool) -> Vec<SmtpClient> {
    let connect = |i: usize| async move {
        let mut client = SmtpClient::connect(server).await;
        if half_mail {
            client.expect_positive("EHLO client.example").await;
            client.expect_positive("MAIL FROM:<a@client.example>").await;
            client.expect_positive(&format!("RCPT TO:<half{i}@inbox.localhost>")).await;
            client.expect_positive("DATA").await;
            client.send(format!("Subject: half {i}\r\n\r\n{}", "half a line ".repeat(100))).await;
        }
        client
    };
    within_deadline("all connect", stream::iter(0..clients).map(connect).buffer_unordered(64).collect()).await
}

async fn is_served(server: SocketAddr) {
    let message = smtp::message("a@client.example", "served", "");
    let reply = send_mail(server, "a@client.example", "other@inbox.localhost", &message).await;
    assert_eq!(reply.code, 250, "{reply:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_idle_connections_cost_little_and_others_are_served() {
    let many = Many::of(CLIENTS).await;
    let clients = many.connections;
    let installation = Installation::new();
    let server = start(&installation);
    is_served(installation.smtp).await;
    let before = server.resident_bytes();
    let mut idle = open(installation.smtp, clients, false).await;
    is_served(installation.smtp).await;
    let each = server.resident_bytes().saturating_sub(before) / clients as u64;
    assert!(each < 16 << 10, "{each} octets an idle connection");
    // None of them was dropped for it.
    for client in idle.iter_mut().step_by(500) {
        client.expect_positive("NOOP").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_half_sent_mails_are_bounded_and_leave_nothing() {
    let many = Many::of(CLIENTS).await;
    let clients = many.connections;
    let installation = Installation::new();
    let server = start(&installation);
    is_served(installation.smtp).await;
    let before = server.resident_bytes();
    let half = open(installation.smtp, clients, true).await;
    is_served(installation.smtp).await;
    let each = server.resident_bytes().saturating_sub(before) / clients as u64;
    assert!(each < 40 << 10, "{each} octets a half-sent mail");
    drop(half);
    is_served(installation.smtp).await;

    let token = installation.credentials()["live_token"].as_str().unwrap().to_owned();
    let url = format!("http://{}/v1/inbox/half7@inbox.localhost", installation.http);
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(2)).build().unwrap();
    let answer = client.get(url).header("x-api-token", token).send().await;
    assert!(answer.is_err_and(|error| error.is_timeout()), "a half-sent mail is in no inbox");
}
