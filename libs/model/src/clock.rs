//! Business time. Code that needs it has a [`Clock`] as an argument; tests pass one that they can move.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};

/// The time for expiry, tokens and limits.
pub trait Clock: Send + Sync + 'static {
    /// The time now, UTC.
    fn now(&self) -> Timestamp;
}

/// The clock of this machine, corrected by its offset from the clock of Postgres, so that all processes
/// agree on the time.
#[derive(Debug, Default)]
pub struct SystemClock {
    offset_micros: AtomicI64,
}

impl SystemClock {
    /// Sets how far the reference clock is ahead of this machine's (negative: behind).
    pub fn set_offset(&self, offset: SignedDuration) {
        let micros = i64::try_from(offset.as_micros()).unwrap_or(0);
        self.offset_micros.store(micros, Ordering::Relaxed);
    }

    /// The uncorrected time of this machine, to measure the offset.
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn local_now(&self) -> Timestamp {
        Timestamp::now()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        self.local_now() + SignedDuration::from_micros(self.offset_micros.load(Ordering::Relaxed))
    }
}

/// A clock for tests, which runs like the system clock and can be moved.
#[derive(Debug, Clone, Default)]
pub struct TestClock {
    system: Arc<SystemClock>,
}

impl TestClock {
    /// Moves the clock by `step` from where it stands.
    pub fn advance(&self, step: SignedDuration) {
        let micros = i64::try_from(step.as_micros()).unwrap_or(0);
        self.system.offset_micros.fetch_add(micros, Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        self.system.now()
    }
}
