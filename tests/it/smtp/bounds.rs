//! Limits of connections, time, errors and memory, with small settings.

use std::time::Duration;

use tempmail_tests::wait::{eventually, within_deadline};
use tempmail_tests::{App, SmtpClient, smtp};

async fn in_data(app: &App, recipient: &str) -> SmtpClient {
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    client.expect_positive("MAIL FROM:<a@client.example>").await;
    client.expect_positive(&format!("RCPT TO:<{recipient}>")).await;
    client.expect_positive("DATA").await;
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_client_is_421_between_commands() {
    let app = App::builder().config(|config| config.smtp.command_seconds = 1).start().await;
    let mut fresh = SmtpClient::connect(app.smtp()).await;
    let mut greeted = SmtpClient::connect_with_ehlo(app.smtp()).await;
    let mut half = SmtpClient::connect_with_ehlo(app.smtp()).await;
    half.send("MAIL FR").await;
    for client in [&mut fresh, &mut greeted, &mut half] {
        assert_eq!(client.reply().await.status(), "421 4.4.2");
        assert_eq!(client.try_reply().await, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_drips_in_does_not_prolong_its_time() {
    let app = App::builder().config(|config| config.smtp.command_seconds = 1).start().await;
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    let cut = within_deadline("a dripping command is cut", async {
        while client.try_send(b"x").await.is_ok() {
            if !smtp::stays_silent(&mut client, Duration::from_millis(100)).await {
                return;
            }
        }
    });
    cut.await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_in_the_data_is_421_and_nothing_is_stored() {
    let app = App::builder().config(|config| config.smtp.data_seconds = 1).start().await;
    let mut client = in_data(&app, "half@inbox.localhost").await;
    client.send("Subject: half\r\n\r\nbody\r\n").await;
    assert_eq!(client.reply().await.status(), "421 4.4.2");
    assert_eq!(client.try_reply().await, None);
    app.assert_inbox_is_empty("half@inbox.localhost").await;
}

/// Takes the 30 s after which the average counts.
#[tokio::test(flavor = "multi_thread")]
async fn data_that_trickles_in_is_421() {
    let app = App::start().await;
    let mut client = in_data(&app, "slow@inbox.localhost").await;
    let cut = within_deadline("a slow sender is cut", async {
        loop {
            client.send("x\r\n").await;
            if !smtp::stays_silent(&mut client, Duration::from_millis(200)).await {
                return;
            }
        }
    });
    cut.await;
    app.assert_inbox_is_empty("slow@inbox.localhost").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_of_one_peer_are_bounded() {
    let app = App::builder()
        .config(|config| {
            config.smtp.connections_per_peer = 2;
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
    eventually("a place is free again", || async {
        let mut again = SmtpClient::connect_without_greeting(app.smtp()).await.ok()?;
        (again.try_reply().await?.code == 220).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_in_all_are_bounded() {
    let app = App::builder().config(|config| config.smtp.connections = 3).start().await;
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(SmtpClient::connect(app.smtp()).await);
    }
    let mut fourth = SmtpClient::connect_without_greeting(app.smtp()).await.unwrap();
    assert_eq!(fourth.reply().await.code, 421);
    for client in &mut held {
        client.expect_positive("EHLO client.example").await;
    }
    held.clear();
    eventually("a place is free again", || async {
        let mut again = SmtpClient::connect_without_greeting(app.smtp()).await.ok()?;
        (again.try_reply().await?.code == 220).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_errors_are_enough() {
    let app = App::start().await;
    let mut client = SmtpClient::connect_with_ehlo(app.smtp()).await;
    for _ in 0..20 {
        assert_eq!(client.command("NONSENSE").await.code, 500);
    }
    assert_eq!(client.reply().await.status(), "421 4.7.0");
    assert_eq!(client.try_reply().await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn message_octets_in_memory_are_bounded_and_given_back() {
    let app = App::builder()
        .config(|config| {
            config.smtp.memory_bytes = 1 << 20;
            config.smtp.max_message_bytes = 1 << 20;
        })
        .start()
        .await;
    // Two who hold most of it without end, so that a third finds no room.
    let block = "x".repeat(998) + "\r\n";
    let mut held = Vec::new();
    for i in 0..2 {
        let mut client = in_data(&app, &format!("h{i}@inbox.localhost")).await;
        client.send(format!("Subject: held\r\n\r\n{}", block.repeat(520))).await;
        held.push(client);
    }
    let message = format!("Subject: third\r\n\r\n{}", block.repeat(600));
    let refused = eventually("memory is found to be taken", || async {
        let reply = tempmail_tests::send_mail(
            app.smtp(),
            "a@client.example",
            "third@inbox.localhost",
            message.as_bytes(),
        )
        .await;
        (reply.code != 250).then_some(reply)
    })
    .await;
    assert_eq!(refused.status(), "452 4.3.1");
    drop(held);
    eventually("memory is given back", || async {
        let reply = tempmail_tests::send_mail(
            app.smtp(),
            "a@client.example",
            "third@inbox.localhost",
            message.as_bytes(),
        )
        .await;
        (reply.code == 250).then_some(())
    })
    .await;
}
