//! Arrivals: published by one process, received by all.

use std::collections::HashSet;

use rand::RngExt as _;

use super::*;

rules!(delivers_to_every_subscriber_once_and_in_order, tells_a_subscriber_that_it_lags);

async fn delivers_to_every_subscriber_once_and_in_order(pair: &BusPair) {
    let mut subscribers = [pair.one.subscribe(), pair.two.subscribe(), pair.two.subscribe()];
    // More than fit into one message over Redis.
    let sent: Vec<Arrival> = (1..=2000).map(arrival).collect();
    pair.one.publish(sent[..1].to_vec());
    pair.one.publish(Vec::new());
    pair.one.publish(sent[1..1500].to_vec());
    pair.one.publish(sent[1500..].to_vec());
    for arrivals in &mut subscribers {
        assert_eq!(receive(arrivals, sent.len()).await, sent);
    }
    pair.two.publish(vec![sent[0]]);
    for arrivals in &mut subscribers {
        assert_eq!(receive(arrivals, 1).await, [sent[0]], "none was delivered twice");
    }
}

async fn tells_a_subscriber_that_it_lags(pair: &BusPair) {
    let mut arrivals = pair.one.subscribe();
    for seq in 1..=3000 {
        pair.one.publish(vec![arrival(seq)]);
    }
    assert!(matches!(next_batch(&mut arrivals).await, Err(RecvError::Lagged(_))));
    assert!(next_batch(&mut arrivals).await.unwrap()[0].seq > 1);
}

#[tokio::test]
async fn delivers_the_others_when_a_publish_is_dropped() {
    // Those of a bus that reconnects would be neither dropped nor received.
    without_reconnections(BusPair::over_proxy, async |pair| {
        let proxy = pair.proxy.as_ref().unwrap();
        let mut arrivals = pair.two.subscribe();
        // Only those of arrivals: probes are shorter.
        proxy.drop_publishes(3, 128);
        let mut received = Vec::new();
        for seq in 1..=60 {
            let known = received.len() + proxy.dropped_publishes();
            pair.one.publish(vec![arrival(seq)]);
            eventually("the arrival is received or dropped", || {
                let batches = std::iter::from_fn(|| arrivals.try_recv().ok());
                received.extend(batches.flat_map(|batch| batch.to_vec()));
                std::future::ready((received.len() + proxy.dropped_publishes() > known).then_some(()))
            })
            .await;
        }
        let seqs: HashSet<i64> = received.iter().map(|arrival| arrival.seq).collect();
        assert_eq!((proxy.dropped_publishes(), received.len(), seqs.len()), (20, 40, 40));
    })
    .await;
}

#[tokio::test]
async fn ignores_garbage_on_the_channel() {
    without_reconnections(BusPair::over_redis, async |pair| {
        let redis = pair.redis.as_ref().unwrap();
        let mut arrivals = pair.two.subscribe();
        let channels: Vec<String> = redis.query(&["PUBSUB", "CHANNELS"]);
        assert_eq!(channels.len(), 1, "one channel for all");
        let mut connection = redis.connection();
        for _ in 0..500 {
            let mut bytes = vec![0_u8; rand::rng().random_range(1..200)];
            rand::fill(&mut bytes[..]);
            let subscribers: i64 =
                ::redis::cmd("PUBLISH").arg(&channels[0]).arg(bytes).query(&mut connection).unwrap();
            assert_eq!(subscribers, 2);
        }
        let published = arrival(7);
        pair.one.publish(vec![published]);
        assert_eq!(receive(&mut arrivals, 1).await, [published]);
    })
    .await;
}
