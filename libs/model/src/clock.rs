//! Business time. Whoever needs it is given a [`Clock`]; tests give one they can move.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};

/// Tells the time that expiry, tokens and limits go by.
pub trait Clock: Send + Sync + 'static {
    /// The time now, UTC.
    fn now(&self) -> Timestamp;
}

/// The clock of this machine, moved by what Postgres' clock is ahead of it, so that all pods
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

    /// The time of this machine alone, to measure the offset against.
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

/// A clock that runs with the system's and can be moved: for tests.
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
