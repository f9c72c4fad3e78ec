//! Clients that guess recipients are slowed down.

use std::time::Duration;

use tempmail_tests::{App, SmtpClient, smtp};

use super::peer_fixture::{app_with_peers, session};

/// Time in which nothing may be heard of a delayed reply.
const SILENCE: Duration = Duration::from_millis(300);

/// Tempmail that tells a peer of two unknown recipients a minute.
async fn app() -> App {
    let app = app_with_peers(|config| config.smtp.unknown_recipients_per_minute = 2).await;
    app.system_domain("closed.localhost", false).await;
    app
}

async fn client_in_transaction(app: &App, address: &str) -> SmtpClient {
    let mut client = session(app, address).await;
    client.expect_positive("MAIL FROM:<a@client.example>").await;
    client
}

#[tokio::test]
async fn delays_replies_about_unknown_recipients_and_no_others() {
    let app = app().await;
    let mut client = client_in_transaction(&app, "203.0.113.1").await;
    for name in ["one", "two"] {
        assert_eq!(client.command(&format!("RCPT TO:<{name}@closed.localhost>")).await.status(), "550 5.1.1");
    }
    client.send("RCPT TO:<three@closed.localhost>\r\n").await;
    assert!(smtp::stays_silent(&mut client, SILENCE).await, "the third reply is delayed");
    // Another session of the same peer, and another peer.
    let mut honest = client_in_transaction(&app, "203.0.113.1").await;
    honest.expect_positive("RCPT TO:<a@inbox.localhost>").await;
    let mut other = client_in_transaction(&app, "203.0.113.2").await;
    assert_eq!(other.command("RCPT TO:<three@closed.localhost>").await.status(), "550 5.1.1");
    app.jump(Duration::from_secs(30)).await;
    assert_eq!(client.reply().await.status(), "550 5.1.1");
    client.expect_positive("RCPT TO:<a@inbox.localhost>").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn closes_a_session_that_would_have_to_wait_too_long() {
    let app = app().await;
    let mut client = client_in_transaction(&app, "203.0.113.1").await;
    let guesses: String = (0..10).map(|i| format!("RCPT TO:<guess{i}@closed.localhost>\r\n")).collect();
    client.send(guesses).await;
    assert_eq!(client.reply().await.status(), "421 4.7.0", "no guess is answered");
    assert_eq!(client.try_reply().await, None);
}
