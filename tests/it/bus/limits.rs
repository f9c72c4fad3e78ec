//! Rate limits and failure limits.

use tempmail_bus::RateKey;

use super::*;

rules!(
    counts_requests_over_all_handles,
    allows_further_requests_one_by_one,
    counts_failures_over_all_handles,
    allows_attempts_when_the_window_has_ended,
);

async fn counts_requests_over_all_handles(pair: &BusPair) {
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
        assert!(decision.retry_after > Duration::ZERO && decision.retry_after <= HOUR / 10);
    }
    let other_key = Uuid::new_v4().into();
    assert!(pair.one.check_rate(&of_one, other_key).await.allowed, "keys are counted apart");
    let other = RateLimit::new("other", 10, HOUR);
    assert_eq!(pair.one.check_rate(&other, key).await.remaining, 9, "limits are counted apart");
}

async fn allows_further_requests_one_by_one(pair: &BusPair) {
    let [of_one, of_two] = pair.rate_limits(60, Duration::from_secs(60));
    let key = RateKey::from(Uuid::new_v4());
    while pair.one.check_rate(&of_one, key).await.allowed {}
    let decision = eventually("one more is allowed", || async {
        let decision = pair.two.check_rate(&of_two, key).await;
        decision.allowed.then_some(decision)
    })
    .await;
    // One a second; a busy machine may be many seconds late.
    assert!(decision.remaining < 30, "not all at once: {decision:?}");
}

async fn counts_failures_over_all_handles(pair: &BusPair) {
    let [of_one, of_two] = pair.failure_limits(3, HOUR);
    let key = RateKey::from(Uuid::new_v4());
    let first = pair.one.begin_attempt(&of_one, key).await.unwrap();
    let _second = pair.two.begin_attempt(&of_two, key).await.unwrap();
    let third = pair.two.begin_attempt(&of_two, key).await.unwrap();
    for refused in [pair.one.begin_attempt(&of_one, key).await, pair.two.begin_attempt(&of_two, key).await] {
        let wait = refused.err().unwrap();
        assert!(wait > HOUR / 2 && wait <= HOUR, "{wait:?}");
    }
    third.uncount().await;
    let fourth = pair.one.begin_attempt(&of_one, key).await.unwrap();
    assert!(pair.two.begin_attempt(&of_two, key).await.is_err());
    fourth.uncount().await;
    first.uncount().await;
    for _ in 0..10 {
        pair.one.begin_attempt(&of_one, key).await.unwrap().uncount().await;
        pair.two.begin_attempt(&of_two, key).await.unwrap().uncount().await;
    }
    let other_key = Uuid::new_v4().into();
    assert!(pair.two.begin_attempt(&of_two, other_key).await.is_ok(), "keys are counted apart");
}

async fn allows_attempts_when_the_window_has_ended(pair: &BusPair) {
    let [of_one, of_two] = pair.failure_limits(1, Duration::from_secs(1));
    let key = RateKey::from(Uuid::new_v4());
    assert!(pair.one.begin_attempt(&of_one, key).await.is_ok());
    eventually("the window has ended", || async { pair.two.begin_attempt(&of_two, key).await.ok() }).await;
}
