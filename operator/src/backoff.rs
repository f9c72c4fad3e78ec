//! When an object that failed is tried again: each has a count of its own.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rand::RngExt as _;
use uuid::Uuid;

/// After the first failure.
const FIRST: Duration = Duration::from_secs(1);
/// After many.
const LONGEST: Duration = Duration::from_secs(300);

/// Failures in a row, by the object's uid.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: Mutex<HashMap<Uuid, u32>>,
}

impl Backoff {
    /// Counts a failure, and says how long to wait: twice as long each time, up to 5 minutes, and up to
    /// a tenth more or less, so that many objects do not come back together.
    pub(crate) fn failed(&self, uid: Uuid) -> Duration {
        let mut failures = self.lock();
        let count = failures.entry(uid).or_default();
        let wait = LONGEST.min(FIRST.saturating_mul(2_u32.saturating_pow(*count)));
        *count = count.saturating_add(1);
        #[expect(clippy::cast_precision_loss, reason = "a gauge of some thousands")]
        metrics::gauge!("tempmail_operator_objects_in_backoff").set(failures.len() as f64);
        jittered(wait)
    }

    /// Forgets the failures of an object: it went well, or it is gone.
    pub(crate) fn went_well(&self, uid: Uuid) {
        let mut failures = self.lock();
        if failures.remove(&uid).is_some() {
            #[expect(clippy::cast_precision_loss, reason = "a gauge of some thousands")]
            metrics::gauge!("tempmail_operator_objects_in_backoff").set(failures.len() as f64);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Uuid, u32>> {
        // Every change is a single one: a panic elsewhere leaves the map whole.
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Up to a tenth more or less.
pub(crate) fn jittered(wait: Duration) -> Duration {
    wait.mul_f64(rand::rng().random_range(0.9..1.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_up_to_five_minutes_and_begins_anew_after_a_success() {
        let (backoff, uid) = (Backoff::default(), Uuid::from_u128(1));
        for expected in [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 300.0, 300.0] {
            let share = backoff.failed(uid).as_secs_f64() / expected;
            assert!((0.9..1.1).contains(&share), "{expected} s: {share}");
        }
        backoff.went_well(uid);
        assert!(backoff.failed(uid).as_secs_f64() < 1.1);
        assert!(
            backoff.failed(Uuid::from_u128(2)).as_secs_f64() < 1.1,
            "another object has a count of its own"
        );
    }
}
