//! Rates of mail by peer and tenant, and by peer and address.

use std::time::Duration;

use tempmail_tests::smtp;

use super::peer_fixture::{app_with_peers, send_from, session};

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
async fn limits_the_bytes_of_a_peer_to_a_tenant() {
    let app = app_with_peers(|config| config.smtp.tenant_bytes_per_hour_per_peer = 10_000).await;
    let message = smtp::message("a@client.example", "large", &"x".repeat(6_000));
    let mut client = session(&app, "203.0.113.1").await;
    let mut send = async |to: &str| client.transact("a@client.example", &[to], &message).await;
    assert_eq!(send("a@inbox.localhost").await.code, 250);
    let refused = send("b@inbox.localhost").await;
    assert_eq!(refused.status(), PEER_RATE, "at the end of data");
    let mut client = session(&app, "203.0.113.1").await;
    client.expect_positive("MAIL FROM:<a@client.example> SIZE=6000").await;
    assert_eq!(client.command("RCPT TO:<b@inbox.localhost>").await.status(), PEER_RATE, "at RCPT");
    assert_eq!(app.count("SELECT count(*) FROM message").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn defers_first_those_who_have_the_most_of_a_total() {
    let app = app_with_peers(|config| {
        config.smtp.address_messages_per_minute = 4;
        config.smtp.address_messages_per_minute_per_peer = 3;
    })
    .await;
    let to = "victim@inbox.localhost";
    for _ in 0..3 {
        assert_eq!(send_from(&app, "203.0.113.1", to).await.code, 250);
    }
    assert_eq!(send_from(&app, "203.0.113.2", to).await.code, 250);
    // The total is reached: half of it is the share of each of two peers, and a third that of each of three.
    assert_eq!(send_from(&app, "203.0.113.2", to).await.code, 250);
    assert_eq!(send_from(&app, "203.0.113.2", to).await.status(), TOTAL_RATE);
    assert_eq!(send_from(&app, "203.0.113.3", to).await.code, 250);
}
