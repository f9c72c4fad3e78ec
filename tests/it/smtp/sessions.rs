//! Sessions that hold what others need: their places, their time, and replies that nobody reads.

use std::time::Duration;

use tempmail_tests::wait::within_deadline;
use tempmail_tests::{App, SmtpClient};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{app_with_peers, send_from, session};

#[tokio::test]
async fn idle_sessions_of_a_peer_give_way_to_another_of_its_sessions() {
    let app = app_with_peers(|config| {
        config.smtp.connections_per_peer = 2;
        config.smtp.idle_seconds = 10;
    })
    .await;
    let mut idle = session(&app, "203.0.113.1").await;
    let _second = session(&app, "203.0.113.1").await;
    app.jump(Duration::from_secs(10)).await;
    idle.expect_positive("NOOP").await;
    assert_eq!(send_from(&app, "203.0.113.1", "a@inbox.localhost").await.code, 250);
    assert_eq!(idle.reply().await.status(), "421 4.7.0");
    assert_eq!(idle.try_reply().await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_more_peer_finds_room_beside_peers_that_hold_all_that_they_may() {
    let app = app_with_peers(|config| {
        config.smtp.connections = 12;
        config.smtp.connections_per_peer = 2;
    })
    .await;
    let mut held = Vec::new();
    for peer in ["203.0.113.1", "203.0.113.2", "203.0.113.3", "203.0.113.4"] {
        held.push(session(&app, peer).await);
        held.push(session(&app, peer).await);
    }
    assert_eq!(send_from(&app, "203.0.113.9", "a@inbox.localhost").await.code, 250);
    let mut more = SmtpClient::connect_from(app.smtp(), "203.0.113.10").await;
    assert_eq!(more.reply().await.code, 220);
    for client in &mut held {
        client.expect_positive("NOOP").await;
    }
}

#[tokio::test]
async fn closes_with_421_at_the_end_of_a_transaction_whatever_arrives() {
    let app = App::builder().config(|config| config.smtp.transaction_seconds = 300).start().await;
    let mut parked = SmtpClient::connect_with_ehlo(app.smtp()).await;
    parked.expect_positive("MAIL FROM:<a@client.example>").await;
    parked.expect_positive("RCPT TO:<a@inbox.localhost>").await;
    parked.send("BDAT 2\r\n\r\n").await;
    assert_eq!(parked.reply().await.code, 250);
    for _ in 0..5 {
        app.jump(Duration::from_secs(50)).await;
        parked.expect_positive("NOOP").await;
    }
    app.jump(Duration::from_secs(50)).await;
    assert_eq!(parked.reply().await.status(), "421 4.4.2");
    assert_eq!(parked.try_reply().await, None);
    app.assert_inbox_is_empty("a@inbox.localhost").await;
}

#[tokio::test]
async fn closes_with_421_at_the_end_of_a_session_whatever_arrives() {
    let app = App::builder().config(|config| config.smtp.session_seconds = 100).start().await;
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    app.jump(Duration::from_secs(50)).await;
    client.expect_positive("NOOP").await;
    app.jump(Duration::from_secs(50)).await;
    assert_eq!(client.reply().await.status(), "421 4.4.2");
    assert_eq!(client.try_reply().await, None);
}

#[tokio::test]
async fn lets_a_transaction_end_after_its_session() {
    let app = App::builder().config(|config| config.smtp.session_seconds = 100).start().await;
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    app.jump(Duration::from_secs(50)).await;
    client.expect_positive("NOOP").await;
    app.jump(Duration::from_secs(35)).await;
    client.expect_positive("MAIL FROM:<a@client.example>").await;
    client.expect_positive("RCPT TO:<a@inbox.localhost>").await;
    client.expect_positive("DATA").await;
    app.jump(Duration::from_secs(20)).await;
    client.send("Subject: late\r\n\r\n.\r\n").await;
    assert_eq!(client.reply().await.code, 250);
    assert_eq!(client.reply().await.status(), "421 4.4.2");
    assert_eq!(app.emails("a@inbox.localhost").await[0]["subject"], "late");
}

#[tokio::test]
async fn closes_with_421_if_data_trickles_after_a_fast_beginning() {
    let app = App::builder().config(|config| config.smtp.data_seconds = 60).start().await;
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    client.expect_positive("MAIL FROM:<a@client.example>").await;
    client.expect_positive("RCPT TO:<a@inbox.localhost>").await;
    client.expect_positive("DATA").await;
    // As much as the minimum rate requires in 16 minutes.
    client.send(format!("\r\n{}", ("x".repeat(98) + "\r\n").repeat(10_000))).await;
    for _ in 0..20 {
        client.send("x\r\n").await;
        if let Ok(reply) = timeout(Duration::from_millis(100), client.try_reply()).await {
            assert_eq!(reply.expect("the server replies before it closes").status(), "421 4.4.2");
            return;
        }
        app.jump(Duration::from_secs(20)).await;
    }
    panic!("the session goes on for 400 s");
}

#[tokio::test]
async fn ends_a_session_whose_client_does_not_read_the_replies() {
    let app = App::start().await;
    let mut stream = TcpStream::connect(app.smtp()).await.unwrap();
    // Far more replies than the buffers of both sides hold.
    let flood = tokio::spawn(async move {
        let commands = "EHLO client.example\r\n".repeat(10_000);
        while stream.write_all(commands.as_bytes()).await.is_ok() {}
    });
    let quarter = Duration::from_secs(app.config().smtp.command_seconds) / 4;
    app.jump_until("the session ends", quarter, || async { flood.is_finished().then_some(()) }).await;
    within_deadline("the client ends", flood).await.unwrap();
    app.deliver("a@inbox.localhost", "others are served", "").await;
}
