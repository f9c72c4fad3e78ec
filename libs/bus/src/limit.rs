//! Limits of how often something may happen under a key: requests, and failures.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use governor::clock::{Clock as _, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use sha2::{Digest as _, Sha256};
use tempmail_admission::ClientNetwork;
use uuid::Uuid;

/// Checks between two sweeps of unused keys, at least.
const SWEEP_MIN: usize = 1024;
/// Keys that a failure limit keeps at most: beyond it the oldest windows are forgotten early.
const FAILURE_KEYS_MAX: usize = 100_000;

/// A key under which requests or failures are counted: an id or a digest, so that no address leaves the
/// process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RateKey(Uuid);

impl RateKey {
    /// The digest of these parts, in this order.
    pub fn from_parts(parts: &[&[u8]]) -> Self {
        let mut digest = Sha256::new();
        for part in parts {
            digest.update(part.len().to_be_bytes());
            digest.update(part);
        }
        let mut key = [0; 16];
        key.copy_from_slice(&digest.finalize()[..16]);
        Self(Uuid::from_bytes(key))
    }

    /// The id or digest.
    pub fn as_uuid(self) -> Uuid {
        self.0
    }
}

impl From<IpAddr> for RateKey {
    /// An IPv4 address and its mapped form have one key.
    fn from(address: IpAddr) -> Self {
        let v6 = match address {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        Self::from_parts(&[&v6.octets()])
    }
}

impl From<ClientNetwork> for RateKey {
    fn from(network: ClientNetwork) -> Self {
        Self::from_parts(&[&network.to_bytes()])
    }
}

impl From<Uuid> for RateKey {
    fn from(id: Uuid) -> Self {
        Self(id)
    }
}

/// What a rate limit decided for one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateDecision {
    /// Whether the request is within the limit; it is counted only then.
    pub allowed: bool,
    /// Requests a window.
    pub limit: u32,
    /// The window.
    pub window: Duration,
    /// Requests that are allowed at once after this one.
    pub remaining: u32,
    /// Time until the whole limit is available again.
    pub reset: Duration,
    /// Time until one more request is allowed; zero while some remain.
    pub retry_after: Duration,
}

/// A rate limit by key, after the generic cell rate algorithm: `limit` requests a window, all of which may
/// come at once. Memory is bounded by the keys seen within about a window.
#[derive(Debug)]
pub struct RateLimit {
    name: &'static str,
    limit: NonZeroU32,
    window: Duration,
    limiter: RateLimiter<RateKey, DashMapStateStore<RateKey>, DefaultClock, StateInformationMiddleware>,
    clock: DefaultClock,
    checks_until_sweep: AtomicUsize,
}

impl RateLimit {
    /// A limit of `limit` requests (0 counts as 1) in each `window`, which is not zero. Limits of an installation have
    /// different names, or different keys.
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
            checks_until_sweep: AtomicUsize::new(SWEEP_MIN),
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

    /// Time after which one more request is allowed.
    pub(crate) fn period(&self) -> Duration {
        self.window / self.limit.get()
    }

    /// Counts one request under `key` in this process only, unless that would exceed the limit.
    pub fn check(&self, key: RateKey) -> RateDecision {
        self.sweep_if_due();
        match self.limiter.check_key(&key) {
            Ok(state) => self.decision(true, state.remaining_burst_capacity(), Duration::ZERO),
            Err(refused) => self.decision(false, 0, refused.wait_time_from(self.clock.now())),
        }
    }

    /// The decision for a request with `remaining` requests after it, or `wait` until the next one if it is
    /// refused.
    pub(crate) fn decision(&self, allowed: bool, remaining: u32, wait: Duration) -> RateDecision {
        let period = self.period();
        let used = self.limit.get().saturating_sub(remaining);
        let retry_after = if remaining == 0 && allowed { period } else { wait };
        RateDecision {
            allowed,
            limit: self.limit.get(),
            window: self.window,
            remaining,
            reset: period * used,
            retry_after,
        }
    }

    /// Forgets unused keys after as many checks as there are keys, so that the average cost of a check does
    /// not depend on their number.
    fn sweep_if_due(&self) {
        let due = self
            .checks_until_sweep
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
            .is_err();
        if due {
            self.checks_until_sweep.store(usize::MAX, Ordering::Relaxed);
            self.limiter.retain_recent();
            self.limiter.shrink_to_fit();
            self.checks_until_sweep.store(self.limiter.len().max(SWEEP_MIN), Ordering::Relaxed);
        }
    }
}

/// Counts one request under each of these keys in this process only; see [`Bus::check_rates`](crate::Bus::check_rates).
pub(crate) fn check_all(counted: &[(&RateLimit, RateKey)]) -> Option<RateDecision> {
    let mut first = None;
    for (limit, key) in counted {
        let decision = limit.check(*key);
        if !decision.allowed {
            return Some(decision);
        }
        first = first.or(Some(decision));
    }
    first
}

/// A limit of failures by key, within a window that begins with the first of them. Memory: 100,000 keys at
/// most. Clones share their counts.
#[derive(Debug, Clone)]
pub struct FailureLimit {
    name: &'static str,
    max_failures: u32,
    window: Duration,
    windows: Arc<Mutex<HashMap<RateKey, FailureWindow>>>,
}

#[derive(Debug)]
struct FailureWindow {
    began: Instant,
    failures: u32,
}

impl FailureLimit {
    /// `max_failures` within a `window` that begins with the first failure. Limits of an installation have different
    /// names, or different keys.
    pub fn new(name: &'static str, max_failures: u32, window: Duration) -> Self {
        Self { name, max_failures, window, windows: Arc::default() }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Failures a window.
    pub(crate) fn max_failures(&self) -> u32 {
        self.max_failures
    }

    /// The window.
    pub(crate) fn window(&self) -> Duration {
        self.window
    }

    /// Counts one failure in this process in advance.
    ///
    /// # Errors
    /// `key` has reached the limit: the time until its window ends.
    pub(crate) fn begin_attempt(&self, key: RateKey) -> Result<Attempt, Duration> {
        let now = Instant::now();
        let mut windows = self.lock();
        if windows.len() >= FAILURE_KEYS_MAX {
            self.evict(&mut windows, now);
        }
        let window = windows.entry(key).or_insert(FailureWindow { began: now, failures: 0 });
        let age = now.duration_since(window.began);
        if age >= self.window {
            *window = FailureWindow { began: now, failures: 0 };
        } else if window.failures >= self.max_failures {
            return Err(self.window - age);
        }
        window.failures += 1;
        Ok(Attempt { limit: self.clone(), key, uncount_elsewhere: None })
    }

    /// Removes ended windows and, if those are few, the older half of the rest.
    fn evict(&self, windows: &mut HashMap<RateKey, FailureWindow>, now: Instant) {
        windows.retain(|_, window| now.duration_since(window.began) < self.window);
        if windows.len() > FAILURE_KEYS_MAX / 2 {
            let mut began: Vec<Instant> = windows.values().map(|window| window.began).collect();
            let (_, median, _) = began.select_nth_unstable(FAILURE_KEYS_MAX / 4);
            let median = *median;
            windows.retain(|_, window| window.began > median);
        }
    }

    fn uncount(&self, key: RateKey) {
        let mut windows = self.lock();
        if let Some(window) = windows.get_mut(&key) {
            window.failures = window.failures.saturating_sub(1);
            if window.failures == 0 {
                windows.remove(&key);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RateKey, FailureWindow>> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An attempt that counts as a failure unless it is uncounted.
pub struct Attempt {
    limit: FailureLimit,
    key: RateKey,
    /// Uncounts the failure outside of this process too.
    uncount_elsewhere: Option<BoxFuture<'static, ()>>,
}

impl Attempt {
    /// The same attempt, counted outside of this process too: `uncount` is run when it is taken back.
    pub(crate) fn also_counted(self, uncount: BoxFuture<'static, ()>) -> Self {
        Self { uncount_elsewhere: Some(uncount), ..self }
    }

    /// Uncounts the failure: the attempt succeeded, or it was not carried out. Waits for Redis for half a second at
    /// most; if Redis is unavailable, other processes count the failure until its window ends.
    pub async fn uncount(self) {
        self.limit.uncount(self.key);
        if let Some(uncount) = self.uncount_elsewhere {
            uncount.await;
        }
    }
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt").field("limit", &self.limit.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u128) -> RateKey {
        Uuid::from_u128(n).into()
    }

    #[test]
    fn digests_the_boundaries_between_parts() {
        assert_ne!(RateKey::from_parts(&[b"ab", b"c"]), RateKey::from_parts(&[b"a", b"bc"]));
        assert_eq!(RateKey::from_parts(&[b"ab", b"c"]), RateKey::from_parts(&[b"ab", b"c"]));
    }

    #[test]
    fn allows_the_whole_limit_at_once_and_no_more() {
        let limit = RateLimit::new("test", 10, Duration::from_secs(3600));
        for used in 1..=10 {
            let decision = limit.check(key(1));
            assert!(decision.allowed);
            assert_eq!(decision.remaining, 10 - used);
        }
        let refused = limit.check(key(1));
        assert!(!refused.allowed);
        // A busy machine may take its time to get here.
        assert!(refused.retry_after > Duration::ZERO && refused.retry_after <= Duration::from_secs(360));
        assert_eq!((refused.limit, refused.reset), (10, Duration::from_secs(3600)));
        assert!(limit.check(key(2)).allowed);
    }

    #[test]
    fn a_rate_limit_forgets_unused_keys() {
        let limit = RateLimit::new("test", 1, Duration::from_nanos(1));
        for n in 0..10_000 {
            limit.check(key(n));
        }
        assert!(limit.limiter.len() <= 2 * SWEEP_MIN);
    }

    #[test]
    fn a_window_of_failures_ends() {
        let limit = FailureLimit::new("test", 1, Duration::from_secs(60));
        assert!(limit.begin_attempt(key(0)).is_ok());
        assert!(limit.begin_attempt(key(0)).is_err_and(|wait| wait <= Duration::from_secs(60)));
        let limit = FailureLimit::new("test", 1, Duration::ZERO);
        assert!(limit.begin_attempt(key(0)).is_ok());
        assert!(limit.begin_attempt(key(0)).is_ok());
    }

    #[test]
    fn a_failure_limit_keeps_a_bounded_number_of_keys() {
        let limit = FailureLimit::new("test", 1, Duration::from_secs(60));
        for n in 0..300_000 {
            assert!(limit.begin_attempt(key(n)).is_ok());
        }
        assert!(limit.lock().len() <= FAILURE_KEYS_MAX);
    }
}
