//! Delivery without faults.

use super::fixture::RealtimeFixture;
use tempmail_tests::load::senders::{LoadProfile, Senders};

/// Concurrent senders.
const CONNECTIONS: usize = 16;

#[tokio::test(flavor = "multi_thread")]
async fn delivers_each_of_480_mails_once_to_every_feed() {
    delivers(480).await;
}

/// Sends so many mails as fast as they are accepted, and asserts that every subscriber receives each once.
pub async fn delivers(mails: usize) {
    let fixture = RealtimeFixture::start().await;
    let profile = LoadProfile {
        connections: CONNECTIONS,
        interval: None,
        mails_per_connection: Some(mails.div_ceil(CONNECTIONS)),
        ..fixture.load()
    };
    let accepted = Senders::start(&profile).finish().await;
    assert!(accepted.len() >= mails);
    fixture.assert_delivered(&accepted).await;
}
