//! Rate limits: the generic cell rate algorithm, a state a key.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};

use crate::RateKey;

/// Checks after which keys that are back at rest are forgotten, at least.
const SWEEP_MIN: usize = 1024;

/// What a limit says to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateDecision {
    /// Whether the request may go on; it is counted only then.
    pub allowed: bool,
    /// Requests a window.
    pub limit: u32,
    /// The window.
    pub window: Duration,
    /// Requests that would be allowed at once after this one.
    pub remaining: u32,
    /// Time until the whole limit is free again.
    pub reset: Duration,
    /// Time until one more request is allowed; zero while some remain.
    pub retry_after: Duration,
}

/// A limit with a state for each key: `limit` requests a window, all of which may come at
/// once. Memory is bounded by the keys seen within about a window.
#[derive(Debug)]
pub struct RateLimit {
    name: &'static str,
    limit: NonZeroU32,
    window: Duration,
    limiter: RateLimiter<RateKey, DashMapStateStore<RateKey>, DefaultClock, StateInformationMiddleware>,
    clock: DefaultClock,
    until_sweep: AtomicUsize,
}

impl RateLimit {
    /// A limit of `limit` requests (0 counts as 1) in each `window`, which is not zero. `name`
    /// tells it from every other limit of the installation.
    pub fn new(name: &'static str, limit: u32, window: Duration) -> Self {
        let limit = NonZeroU32::new(limit).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::with_period((window / limit.get()).max(Duration::from_nanos(1)))
            .expect("the period is not zero")
            .allow_burst(limit);
        let clock = DefaultClock::default();
        Self {
            name,
            limit,
            window,
            limiter: RateLimiter::dashmap_with_clock(quota, clock.clone()).with_middleware(),
            clock,
            until_sweep: AtomicUsize::new(SWEEP_MIN),
        }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Requests a window.
    pub(crate) fn limit(&self) -> u32 {
        self.limit.get()
    }

    /// Time in which one more request is allowed.
    pub(crate) fn period(&self) -> Duration {
        self.window / self.limit.get()
    }

    /// Counts one request under `key` in this process alone, unless it is over the limit.
    pub fn check(&self, key: RateKey) -> RateDecision {
        self.sweep_sometimes();
        match self.limiter.check_key(&key) {
            Ok(state) => self.decision(true, state.remaining_burst_capacity(), Duration::ZERO),
            Err(refused) => self.decision(false, 0, refused.wait_time_from(self.clock.now())),
        }
    }

    /// A decision that was made: `remaining` after it, or `wait` where it is not allowed.
    pub(crate) fn decision(&self, allowed: bool, remaining: u32, wait: Duration) -> RateDecision {
        let per_request = self.period();
        let missing = self.limit.get().saturating_sub(remaining);
        let retry_after = if remaining == 0 && allowed { per_request } else { wait };
        RateDecision {
            allowed,
            limit: self.limit.get(),
            window: self.window,
            remaining,
            reset: per_request * missing,
            retry_after,
        }
    }

    /// Forgets keys at rest after as many checks as there are keys, so that a check costs the
    /// same on average however many there are.
    fn sweep_sometimes(&self) {
        let due = self
            .until_sweep
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
            .is_err();
        if due {
            self.until_sweep.store(usize::MAX, Ordering::Relaxed);
            self.limiter.retain_recent();
            self.limiter.shrink_to_fit();
            self.until_sweep.store(self.limiter.len().max(SWEEP_MIN), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn key(n: u128) -> RateKey {
        Uuid::from_u128(n).into()
    }

    #[test]
    fn the_whole_limit_may_come_at_once_and_no_more() {
        let limits = RateLimit::new("test", 10, Duration::from_secs(3600));
        for used in 1..=10 {
            let decision = limits.check(key(1));
            assert!(decision.allowed);
            assert_eq!(decision.remaining, 10 - used);
        }
        let refused = limits.check(key(1));
        assert!(!refused.allowed);
        assert!(
            refused.retry_after > Duration::from_secs(350) && refused.retry_after <= Duration::from_secs(360)
        );
        assert_eq!((refused.limit, refused.reset), (10, Duration::from_secs(3600)));
        assert!(limits.check(key(2)).allowed);
    }

    #[test]
    fn keys_at_rest_are_forgotten() {
        let limits = RateLimit::new("test", 1, Duration::from_nanos(1));
        for n in 0..10_000 {
            limits.check(key(n));
        }
        assert!(limits.limiter.len() <= 2 * SWEEP_MIN);
    }
}
