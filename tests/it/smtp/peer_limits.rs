//! Limits by peer and by tenant: rates of mail, unknown recipients, and the memory for message data.

use std::time::Duration;

use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Reply, SmtpClient, smtp};

use super::{app_with_peers, send_from, session};

const PEER_RATE: &str = "450 4.7.1";
const TOTAL_RATE: &str = "450 4.2.1";

#[tokio::test]
async fn limits_the_messages_of_a_peer_to_an_address() {
    let app = app_with_peers(|config| config.smtp.address_messages_per_minute_per_peer = 2).await;
    let to = "a@inbox.localhost";
    for _ in 0..2 {
        assert_eq!(send_from(&app, "203.0.113.1", to).await.code, 250);
    }
    let mut client = session(&app, "203.0.113.1").await;
    client.expect_positive("MAIL FROM:<a@client.example>").await;
    assert_eq!(client.command(&format!("RCPT TO:<{to}>")).await.status(), PEER_RATE);
    client.expect_positive("RCPT TO:<other@inbox.localhost>").await;
    assert_eq!(send_from(&app, "203.0.113.2", to).await.code, 250, "another peer");
    app.jump(Duration::from_secs(120)).await;
    assert_eq!(send_from(&app, "203.0.113.1", to).await.code, 250, "after two windows");
    assert_eq!(app.emails(to).await.len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_mail_to_all_addresses_of_a_tenant() {
    let app = app_with_peers(|config| config.smtp.tenant_messages_per_minute_per_peer = 3).await;
    app.custom_domain(&app.tenant, "ships.example").await;
    let message = smtp::message("a@client.example", "to three", "");
    let mut client = session(&app, "203.0.113.1").await;
    let recipients = ["a@ships.example", "b@ships.example", "c@ships.example"];
    assert_eq!(client.transact("a@client.example", &recipients, &message).await.code, 250);
    assert_eq!(send_from(&app, "203.0.113.1", "d@ships.example").await.status(), PEER_RATE);
    // All that have no tenant count as one.
    for to in ["a@inbox.localhost", "b@inbox.localhost", "c@inbox.localhost"] {
        assert_eq!(send_from(&app, "203.0.113.1", to).await.code, 250);
    }
    assert_eq!(send_from(&app, "203.0.113.1", "d@inbox.localhost").await.status(), PEER_RATE);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_sends_at_most_what_is_left_of_a_total_and_one_more_finds_some() {
    let app = app_with_peers(|config| {
        config.smtp.address_messages_per_minute = 8;
        config.smtp.address_messages_per_minute_per_peer = 6;
    })
    .await;
    let to = "victim@inbox.localhost";
    for (peer, accepted) in [("203.0.113.1", 4), ("203.0.113.2", 2), ("203.0.113.3", 1)] {
        for _ in 0..accepted {
            assert_eq!(send_from(&app, peer, to).await.code, 250, "{peer}");
        }
        assert_eq!(send_from(&app, peer, to).await.status(), TOTAL_RATE, "{peer}");
    }
    assert_eq!(send_from(&app, "203.0.113.4", to).await.code, 250);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_that_rotates_its_addresses_has_the_rate_of_four_peers() {
    let app = app_with_peers(|config| config.smtp.tenant_messages_per_minute_per_peer = 1).await;
    let mut accepted = 0;
    for host in 0..24 {
        let reply = send_from(&app, &format!("2001:db8:0:{host:x}00::1"), "a@inbox.localhost").await;
        assert!(reply.code == 250 || reply.status() == PEER_RATE, "{reply:?}");
        accepted += usize::from(reply.code == 250);
    }
    assert_eq!(accepted, 4);
    assert_eq!(send_from(&app, "2001:db8:1::1", "a@inbox.localhost").await.code, 250);
}

/// Time in which nothing may be heard of a delayed reply.
const SILENCE: Duration = Duration::from_millis(300);

/// Tempmail that tells a peer of two unknown recipients a minute.
async fn app_with_two_guesses() -> App {
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
    let app = app_with_two_guesses().await;
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
    let app = app_with_two_guesses().await;
    let mut client = client_in_transaction(&app, "203.0.113.1").await;
    let guesses: String = (0..10).map(|i| format!("RCPT TO:<guess{i}@closed.localhost>\r\n")).collect();
    client.send(guesses).await;
    assert_eq!(client.reply().await.status(), "421 4.7.0", "no guess is answered");
    assert_eq!(client.try_reply().await, None);
}

/// Octets of a message that is parked.
const PARKED: usize = 900_000;

/// Tempmail with memory for eight parked messages, two of them of a peer and four to a tenant.
async fn app_with_memory() -> App {
    app_with_peers(|config| {
        config.smtp.max_message_bytes = 1_000_000;
        config.smtp.memory_bytes = 8_000_000;
        config.smtp.memory_bytes_per_peer = 2_000_000;
        config.smtp.memory_bytes_per_tenant = 4_000_000;
    })
    .await
}

/// Sends most of a message and keeps the session; returns the reply to the chunk.
async fn park(app: &App, address: &str, recipient: &str) -> (SmtpClient, Reply) {
    let mut client = session(app, address).await;
    client.expect_positive("MAIL FROM:<a@client.example>").await;
    client.expect_positive(&format!("RCPT TO:<{recipient}>")).await;
    let lines = format!("\r\n{}", ("x".repeat(98) + "\r\n").repeat(PARKED / 100));
    client.send(format!("BDAT {}\r\n{lines}", lines.len())).await;
    let reply = client.reply().await;
    client.expect_positive("NOOP").await;
    (client, reply)
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_one_peer_parks_defer_nobody_else() {
    let app = app_with_memory().await;
    app.custom_domain(&app.tenant, "ships.example").await;
    let mut held = Vec::new();
    let mut refused = 0;
    for i in 0..22 {
        let (client, reply) = park(&app, "203.0.113.1", &format!("parked{i}@inbox.localhost")).await;
        assert!(["250 2.0.0", "452 4.3.1"].contains(&reply.status().as_str()), "{reply:?}");
        refused += usize::from(reply.code == 452);
        held.push(client);
    }
    assert_eq!(refused, 20, "a peer has memory for two");
    assert_eq!(send_from(&app, "203.0.113.2", "other@inbox.localhost").await.code, 250);
    let (_large, reply) = park(&app, "203.0.113.2", "other@inbox.localhost").await;
    assert_eq!(reply.code, 250);
    // At the address of the attacker, also to another tenant.
    assert_eq!(send_from(&app, "203.0.113.1", "a@ships.example").await.status(), "452 4.3.1");
    drop(held);
    eventually("the memory is released", || async {
        (send_from(&app, "203.0.113.1", "a@ships.example").await.code == 250).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_more_peer_and_tenant_find_memory_beside_those_that_hold_all_that_they_may() {
    let app = app_with_memory().await;
    app.custom_domain(&app.tenant, "ships.example").await;
    let mut held = Vec::new();
    for (address, recipient, code) in [
        ("203.0.113.1", "a@inbox.localhost", 250),
        ("203.0.113.1", "b@inbox.localhost", 250),
        ("203.0.113.2", "c@inbox.localhost", 250),
        ("203.0.113.2", "d@inbox.localhost", 250),
        // All mail without a tenant has what a tenant may have.
        ("203.0.113.3", "e@inbox.localhost", 452),
    ] {
        let (client, reply) = park(&app, address, recipient).await;
        assert_eq!(reply.code, code, "{address}");
        held.push(client);
    }
    let (mut parked, reply) = park(&app, "203.0.113.4", "a@ships.example").await;
    assert_eq!(reply.code, 250);
    assert_eq!(send_from(&app, "203.0.113.5", "b@ships.example").await.code, 250);
    // Nobody's message was discarded for another.
    for client in held[..4].iter_mut().chain([&mut parked]) {
        client.send("BDAT 3 LAST\r\nx\r\n").await;
        assert_eq!(client.reply().await.status(), "250 2.0.0");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_networks_of_an_ipv6_address_share_their_memory() {
    let app = app_with_peers(|config| {
        config.smtp.max_message_bytes = 1_000_000;
        config.smtp.memory_bytes_per_peer = 1_000_000;
    })
    .await;
    let mut held = Vec::new();
    for (address, code) in [
        ("2001:db8:0:100::1", 250),
        ("2001:db8:0:100::2", 452),
        ("2001:db8:0:101::1", 250),
        ("2001:db8:0:102::1", 452),
        ("2001:db8:0:200::1", 250),
        ("2001:db8:0:300::1", 250),
        ("2001:db8:0:400::1", 452),
        ("2001:db8:1:400::1", 250),
    ] {
        let (client, reply) = park(&app, address, "a@inbox.localhost").await;
        assert_eq!(reply.code, code, "{address}");
        held.push(client);
    }
}
