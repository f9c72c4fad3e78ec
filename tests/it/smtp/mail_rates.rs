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
