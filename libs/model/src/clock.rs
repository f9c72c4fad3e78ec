//! Business time. Code that needs it has a [`Clock`] as an argument; tests pass one that they can move.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

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

    fn offset(&self) -> SignedDuration {
        SignedDuration::from_micros(self.offset_micros.load(Ordering::Relaxed))
    }

    /// The uncorrected time of this machine, to measure the offset.
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn local_now(&self) -> Timestamp {
        Timestamp::now()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        self.local_now() + self.offset()
    }
}

/// A clock for tests, which runs like the system clock until it is paused, and can be moved.
#[derive(Debug, Clone, Default)]
pub struct TestClock {
    system: Arc<SystemClock>,
    paused_at: Arc<OnceLock<Timestamp>>,
}

impl TestClock {
    /// Moves the clock by `step` from where it stands.
    pub fn advance(&self, step: SignedDuration) {
        let micros = i64::try_from(step.as_micros()).unwrap_or(0);
        self.system.offset_micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// Lets the clock stand still from now on, but for [`advance`](Self::advance).
    pub fn pause(&self) {
        self.paused_at.get_or_init(|| self.system.local_now());
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        match self.paused_at.get() {
            Some(paused_at) => *paused_at + self.system.offset(),
            None => self.system.now(),
        }
    }
}
