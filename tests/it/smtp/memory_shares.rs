//! The memory for message data: what peers and tenants hold at most, while messages are parked.

use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Reply, SmtpClient};

use super::peer_fixture::{app_with_peers, send_from, session};

/// Octets of a message that is parked.
const PARKED: usize = 900_000;

/// Tempmail with memory for eight parked messages, two of them of a peer and four to a tenant.
async fn app() -> App {
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
    let app = app().await;
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
    let app = app().await;
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
