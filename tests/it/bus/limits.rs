//! Rates and failures.

use std::time::Duration;

use tempmail_bus::RateKey;

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

rules!(
    requests_are_counted_over_all_handles,
    requests_are_allowed_again_one_by_one,
    failures_are_counted_over_all_handles,
    a_window_of_failures_ends,
);

async fn requests_are_counted_over_all_handles(pair: Pair) {
    let [of_one, of_two] = pair.rate_limits(10, HOUR);
    let key = RateKey::from(Uuid::new_v4());
    for left in (0..10).rev() {
        let decision = match left % 2 {
            0 => pair.one.check_rate(&of_one, key).await,
            _ => pair.two.check_rate(&of_two, key).await,
        };
        assert!(decision.allowed);
        assert_eq!((decision.limit, decision.window, decision.remaining), (10, HOUR, left));
        assert_eq!(decision.reset, HOUR / 10 * (10 - left));
        let wait = if left == 0 { HOUR / 10 } else { Duration::ZERO };
        assert_eq!(decision.retry_after, wait);
    }
    for decision in [pair.one.check_rate(&of_one, key).await, pair.two.check_rate(&of_two, key).await] {
        assert!(!decision.allowed);
        assert_eq!((decision.remaining, decision.reset), (0, HOUR));
        // However slow the machine, it took less than two minutes to get here.
        assert!(decision.retry_after > Duration::from_secs(240) && decision.retry_after <= HOUR / 10);
    }
    assert!(pair.one.check_rate(&of_one, Uuid::new_v4().into()).await.allowed, "keys are counted apart");
    let other = RateLimit::new("other", 10, HOUR);
    assert_eq!(pair.one.check_rate(&other, key).await.remaining, 9, "limits are counted apart");
}

async fn requests_are_allowed_again_one_by_one(pair: Pair) {
    let [of_one, of_two] = pair.rate_limits(2, Duration::from_secs(2));
    let key = RateKey::from(Uuid::new_v4());
    while pair.one.check_rate(&of_one, key).await.allowed {}
    let decision = eventually("one more is allowed", || async {
        let decision = pair.two.check_rate(&of_two, key).await;
        decision.allowed.then_some(decision)
    })
    .await;
    assert_eq!(decision.remaining, 0, "not all at once");
}

async fn failures_are_counted_over_all_handles(pair: Pair) {
    let [of_one, of_two] = pair.failure_limits(3, HOUR);
    let key = RateKey::from(Uuid::new_v4());
    let first = pair.one.begin_attempt(&of_one, key).await.unwrap();
    let _second = pair.two.begin_attempt(&of_two, key).await.unwrap();
    let third = pair.two.begin_attempt(&of_two, key).await.unwrap();
    for refused in [pair.one.begin_attempt(&of_one, key).await, pair.two.begin_attempt(&of_two, key).await] {
        let wait = refused.err().unwrap();
        assert!(wait > HOUR - Duration::from_secs(120) && wait <= HOUR, "{wait:?}");
    }
    third.record_success().await;
    let fourth = pair.one.begin_attempt(&of_one, key).await.unwrap();
    assert!(pair.two.begin_attempt(&of_two, key).await.is_err());
    fourth.record_success().await;
    first.record_success().await;
    for _ in 0..10 {
        pair.one.begin_attempt(&of_one, key).await.unwrap().record_success().await;
        pair.two.begin_attempt(&of_two, key).await.unwrap().record_success().await;
    }
    assert!(pair.two.begin_attempt(&of_two, Uuid::new_v4().into()).await.is_ok(), "keys are counted apart");
}

async fn a_window_of_failures_ends(pair: Pair) {
    let [of_one, of_two] = pair.failure_limits(1, Duration::from_secs(1));
    let key = RateKey::from(Uuid::new_v4());
    assert!(pair.one.begin_attempt(&of_one, key).await.is_ok());
    eventually("the window is over", || async { pair.two.begin_attempt(&of_two, key).await.ok() }).await;
}
