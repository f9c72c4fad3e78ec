//! Messages that are lost or damaged on their way.

use std::collections::HashSet;

use rand::RngExt as _;
use tempmail_tests::RedisProxy;

use super::*;

#[tokio::test]
async fn a_publish_that_is_lost_harms_no_other() {
    let redis = RedisServer::new();
    let proxy = RedisProxy::start(redis.port()).await;
    let (one, two) = (connect(&proxy.url()).await, connect(&redis.url()).await);
    let mut hints = two.subscribe();
    // Those of arrivals: probes are shorter.
    proxy.drop_publishes(3, 128);
    let mut heard = Vec::new();
    for seq in 1..=60 {
        let known = heard.len() + proxy.dropped_publishes();
        one.publish(vec![arrival(seq)]);
        eventually("it is heard of or lost", || {
            heard.extend(std::iter::from_fn(|| hints.try_recv().ok()).flat_map(|batch| batch.to_vec()));
            std::future::ready((heard.len() + proxy.dropped_publishes() > known).then_some(()))
        })
        .await;
    }
    let seqs: HashSet<i64> = heard.iter().map(|arrival| arrival.seq).collect();
    assert_eq!((proxy.dropped_publishes(), heard.len(), seqs.len()), (20, 40, 40));
    assert!(one.is_connected(), "the probe comes back");
}

#[tokio::test]
async fn garbage_on_the_channel_is_dropped() {
    let redis = RedisServer::new();
    let (one, two) = (connect(&redis.url()).await, connect(&redis.url()).await);
    let mut hints = two.subscribe();
    let channels: Vec<String> = redis.query(&["PUBSUB", "CHANNELS"]);
    assert_eq!(channels.len(), 1, "one channel for all");
    let mut connection = redis.connection();
    for _ in 0..500 {
        let mut octets = vec![0_u8; rand::rng().random_range(1..200)];
        rand::fill(&mut octets[..]);
        let heard: i64 = redis::cmd("PUBLISH").arg(&channels[0]).arg(octets).query(&mut connection).unwrap();
        assert_eq!(heard, 2);
    }
    let wanted = arrival(7);
    one.publish(vec![wanted]);
    assert_eq!(receive(&mut hints, 1).await, [wanted]);
    assert!(one.is_connected() && two.is_connected());
}
