//! Arrivals.

use super::*;

rules!(reach_every_subscriber_once_and_in_order, whoever_falls_behind_is_told);

async fn reach_every_subscriber_once_and_in_order(pair: Pair) {
    let mut subscribers = [pair.one.subscribe(), pair.two.subscribe(), pair.two.subscribe()];
    // More than one message over Redis may hold.
    let sent: Vec<Arrival> = (1..=2000).map(arrival).collect();
    pair.one.publish(sent[..1].to_vec());
    pair.one.publish(Vec::new());
    pair.one.publish(sent[1..1500].to_vec());
    pair.one.publish(sent[1500..].to_vec());
    for hints in &mut subscribers {
        assert_eq!(receive(hints, sent.len()).await, sent);
    }
    pair.two.publish(vec![sent[0]]);
    for hints in &mut subscribers {
        assert_eq!(receive(hints, 1).await, [sent[0]], "none came twice");
    }
}

async fn whoever_falls_behind_is_told(pair: Pair) {
    let mut hints = pair.one.subscribe();
    for seq in 1..=3000 {
        pair.one.publish(vec![arrival(seq)]);
    }
    assert!(matches!(next(&mut hints).await, Err(RecvError::Lagged(_))));
    assert!(next(&mut hints).await.unwrap()[0].seq > 1);
}
