//! Limits of connections, time and memory, with low settings.

use std::time::Duration;

use tempmail_tests::wait::{eventually, within_deadline};
use tempmail_tests::{App, SmtpClient, smtp};

/// A client after the reply to DATA.
async fn client_in_data(app: &App, recipient: &str) -> SmtpClient {
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    client.expect_positive("MAIL FROM:<a@client.example>").await;
    client.expect_positive(&format!("RCPT TO:<{recipient}>")).await;
    client.expect_positive("DATA").await;
    client
}

#[tokio::test]
async fn closes_with_421_after_silence_between_commands() {
    let app = App::start().await;
    let mut greeted = SmtpClient::connect(app.smtp()).await;
    let mut with_ehlo = SmtpClient::connect_with_ehlo(app.smtp()).await;
    let mut in_command = SmtpClient::connect_with_ehlo(app.smtp()).await;
    in_command.send("MAIL FR").await;
    app.jump(Duration::from_secs(app.config().smtp.command_seconds)).await;
    for client in [&mut greeted, &mut with_ehlo, &mut in_command] {
        assert_eq!(client.reply().await.status(), "421 4.4.2");
        assert_eq!(client.try_reply().await, None);
    }
}

#[tokio::test]
async fn closes_a_client_that_sends_a_command_byte_by_byte() {
    let app = App::start().await;
    let pause = Duration::from_secs(app.config().smtp.command_seconds) / 4;
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    for _ in 0..10 {
        client.send("x").await;
        if !smtp::stays_silent(&mut client, Duration::from_millis(100)).await {
            return;
        }
        app.jump(pause).await;
    }
    panic!("the connection stays open");
}

#[tokio::test(flavor = "multi_thread")]
async fn closes_with_421_after_silence_in_the_data_and_stores_nothing() {
    let app = App::builder().config(|config| config.smtp.data_seconds = 5).start().await;
    let mut client = client_in_data(&app, "half@inbox.localhost").await;
    client.send("Subject: half\r\n\r\nbody\r\n").await;
    assert_eq!(client.reply().await.status(), "421 4.4.2");
    assert_eq!(client.try_reply().await, None);
    app.assert_inbox_is_empty("half@inbox.localhost").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_connections_per_peer() {
    let app = App::builder()
        .config(|config| {
            config.smtp.connections_per_peer = 2;
            config.smtp.idle_seconds = 3_600;
            config.smtp.unlimited_networks.clear();
        })
        .start()
        .await;
    let first = SmtpClient::connect(app.smtp()).await;
    let _second = SmtpClient::connect(app.smtp()).await;
    let mut third = SmtpClient::connect_without_greeting(app.smtp()).await.unwrap();
    assert_eq!(third.reply().await.code, 421);
    assert_eq!(third.try_reply().await, None);
    drop(first);
    eventually("a connection is accepted again", || async {
        let mut again = SmtpClient::connect_without_greeting(app.smtp()).await.ok()?;
        (again.try_reply().await?.code == 220).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_connections_in_all() {
    let app = App::builder().config(|config| config.smtp.connections = 3).start().await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(SmtpClient::connect(app.smtp()).await);
    }
    let mut fourth = SmtpClient::connect_without_greeting(app.smtp()).await.unwrap();
    assert_eq!(fourth.reply().await.code, 421);
    for client in &mut clients {
        client.expect_positive("EHLO client.example").await;
    }
    clients.clear();
    eventually("a connection is accepted again", || async {
        let mut again = SmtpClient::connect_without_greeting(app.smtp()).await.ok()?;
        (again.try_reply().await?.code == 220).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn defers_mail_while_message_memory_is_exhausted() {
    let app = App::builder()
        .config(|config| {
            config.smtp.memory_bytes = 4 << 20;
            config.smtp.max_message_bytes = 1 << 20;
        })
        .start()
        .await;
    // Two incomplete messages use half of the memory, and all mail without a tenant has at most what is left.
    let block = "x".repeat(998) + "\r\n";
    let message = format!("Subject: mail\r\n\r\n{}", block.repeat(600));
    let mut held = Vec::new();
    for i in 0..2 {
        let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
        client.expect_positive("MAIL FROM:<a@client.example>").await;
        client.expect_positive(&format!("RCPT TO:<h{i}@inbox.localhost>")).await;
        client.send(format!("BDAT {}\r\n{message}", message.len())).await;
        assert_eq!(client.reply().await.code, 250);
        held.push(client);
    }
    let third = || {
        tempmail_tests::send_mail(app.smtp(), "a@client.example", "third@inbox.localhost", message.as_bytes())
    };
    assert_eq!(third().await.status(), "452 4.3.1");
    drop(held);
    eventually("memory is released", || async { (third().await.code == 250).then_some(()) }).await;
}

mod chaos {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "chaos: the rate is enforced after 30 s"]
    async fn closes_with_421_if_data_arrives_too_slowly() {
        let app = App::start().await;
        let mut client = client_in_data(&app, "slow@inbox.localhost").await;
        let closed = within_deadline("the connection is closed", async {
            loop {
                client.send("x\r\n").await;
                if !smtp::stays_silent(&mut client, Duration::from_millis(200)).await {
                    return;
                }
            }
        });
        closed.await;
        app.assert_inbox_is_empty("slow@inbox.localhost").await;
    }
}
