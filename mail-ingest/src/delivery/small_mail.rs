//! When small mail was delivered last. Beside it, large mail rests for much longer than it works: small mail finds
//! processor and disk free.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long after a small mail large mail still rests.
const BESIDE: Duration = Duration::from_secs(1);
/// How many times as long as a piece of work took it rests, and at most. A disk is slow not only while it is given data but
/// also while it keeps what it was given before: it is bytes a second that delay a small mail.
const REST_FACTOR: u32 = 6;
const REST_MAX: Duration = Duration::from_millis(100);

/// The last small mail.
#[derive(Debug)]
pub(super) struct SmallMail {
    started: Instant,
    /// When it came, in milliseconds since `started`.
    came_at: AtomicU64,
}

impl SmallMail {
    /// None yet; within the first second it counts as if there was one.
    pub(super) fn new() -> Self {
        Self { started: Instant::now(), came_at: AtomicU64::new(0) }
    }

    /// Records one.
    pub(super) fn record(&self) {
        self.came_at.store(self.age(), Ordering::Relaxed);
    }

    /// Whether small mail is delivered these moments.
    pub(super) fn is_present(&self) -> bool {
        let since = self.age().saturating_sub(self.came_at.load(Ordering::Relaxed));
        Duration::from_millis(since) < BESIDE
    }

    /// How long large mail rests after a piece of work that took so long; `None`: it need not.
    pub(super) fn rest_after(&self, work: Duration) -> Option<Duration> {
        self.is_present().then(|| (work * REST_FACTOR).min(REST_MAX))
    }

    /// Milliseconds since the start.
    fn age(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_mail_rests_six_times_as_long_as_it_worked_within_a_bound() {
        let (small_mail, ms) = (SmallMail::new(), Duration::from_millis);
        small_mail.record();
        assert_eq!(small_mail.rest_after(ms(4)), Some(ms(24)));
        assert_eq!(small_mail.rest_after(ms(900)), Some(ms(100)));
    }

    #[test]
    fn large_mail_does_not_rest_a_second_after_the_last_small_one() {
        let started = Instant::now().checked_sub(BESIDE).expect("the clock is that old");
        let small_mail = SmallMail { started, came_at: AtomicU64::new(0) };
        assert_eq!(small_mail.rest_after(Duration::from_millis(4)), None);
        small_mail.record();
        assert!(small_mail.is_present());
    }
}
