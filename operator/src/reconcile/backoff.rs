//! Exponential backoff per object.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tempmail_model::chance;
use uuid::Uuid;

/// Delay after the first failure.
const FIRST: Duration = Duration::from_secs(1);
/// Upper bound of the delay.
const LONGEST: Duration = Duration::from_secs(300);

/// Consecutive failures, by the object's uid.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: Mutex<HashMap<Uuid, u32>>,
}

impl Backoff {
    /// Counts a failure and returns the delay until the retry: it doubles up to 5 minutes, with a jitter of
    /// a tenth, so that many objects are not retried at once.
    pub(crate) fn record_failure(&self, uid: Uuid) -> Duration {
        let mut failures = self.lock();
        let count = failures.entry(uid).or_default();
        let delay = LONGEST.min(FIRST.saturating_mul(2_u32.saturating_pow(*count)));
        *count = count.saturating_add(1);
        set_gauge(failures.len());
        jittered(delay)
    }

    /// Resets an object that was reconciled.
    pub(crate) fn reset(&self, uid: Uuid) {
        let mut failures = self.lock();
        if failures.remove(&uid).is_some() {
            set_gauge(failures.len());
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, u32>> {
        // Each change is a single operation, so a panic elsewhere leaves the map consistent.
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a gauge of some thousands")]
fn set_gauge(objects: usize) {
    metrics::gauge!("tempmail_operator_objects_in_backoff").set(objects as f64);
}

/// Up to a tenth more or less.
pub(crate) fn jittered(delay: Duration) -> Duration {
    delay.mul_f64(chance::factor(0.9..=1.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_five_minutes_and_starts_over_after_a_success() {
        let (backoff, uid) = (Backoff::default(), Uuid::from_u128(1));
        for expected in [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 300.0, 300.0] {
            let ratio = backoff.record_failure(uid).as_secs_f64() / expected;
            assert!((0.9..1.1).contains(&ratio), "{expected} s: {ratio}");
        }
        backoff.reset(uid);
        assert!(backoff.record_failure(uid).as_secs_f64() < 1.1);
    }

    #[test]
    fn counts_the_failures_of_each_object() {
        let backoff = Backoff::default();
        for _ in 0..5 {
            backoff.record_failure(Uuid::from_u128(1));
        }
        assert!(backoff.record_failure(Uuid::from_u128(2)).as_secs_f64() < 1.1);
    }
}
