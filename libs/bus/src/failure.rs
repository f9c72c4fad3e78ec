//! Counts failures a key within a window that begins with the first of them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::RateKey;
use crate::over_redis::Counted;

/// Keys kept at most: beyond it the oldest windows are forgotten early.
const KEYS_MAX: usize = 100_000;

#[derive(Debug)]
struct Window {
    began: Instant,
    failures: u32,
}

/// A limit of failures by key. Memory: 100,000 keys at most.
#[derive(Debug)]
pub struct FailureLimit {
    name: &'static str,
    most: u32,
    window: Duration,
    windows: Mutex<HashMap<RateKey, Window>>,
}

impl FailureLimit {
    /// `most` failures within a `window` that begins with the first of them. `name` tells it
    /// from every other limit of the installation.
    pub fn new(name: &'static str, most: u32, window: Duration) -> Self {
        Self { name, most, window, windows: Mutex::new(HashMap::new()) }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Failures a window.
    pub(crate) fn most(&self) -> u32 {
        self.most
    }

    /// The window.
    pub(crate) fn window(&self) -> Duration {
        self.window
    }

    /// Counts one failure in this process beforehand.
    pub(crate) fn begin(&self, key: RateKey) -> Result<Attempt<'_>, Duration> {
        let now = Instant::now();
        let mut windows = self.lock();
        if windows.len() >= KEYS_MAX {
            self.make_room(&mut windows, now);
        }
        let window = windows.entry(key).or_insert(Window { began: now, failures: 0 });
        let age = now.duration_since(window.began);
        if age >= self.window {
            *window = Window { began: now, failures: 0 };
        } else if window.failures >= self.most {
            return Err(self.window - age);
        }
        window.failures += 1;
        Ok(Attempt { limit: self, key, counted: None })
    }

    /// Forgets what is over; where that is little, the older half of the rest.
    fn make_room(&self, windows: &mut HashMap<RateKey, Window>, now: Instant) {
        windows.retain(|_, window| now.duration_since(window.began) < self.window);
        if windows.len() > KEYS_MAX / 2 {
            let mut began: Vec<Instant> = windows.values().map(|window| window.began).collect();
            let (_, median, _) = began.select_nth_unstable(KEYS_MAX / 4);
            let median = *median;
            windows.retain(|_, window| window.began > median);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RateKey, Window>> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Something that counts as failed unless it is said to have succeeded.
#[derive(Debug)]
pub struct Attempt<'a> {
    limit: &'a FailureLimit,
    key: RateKey,
    counted: Option<Counted>,
}

impl Attempt<'_> {
    pub(crate) fn counted_in(self, counted: Counted) -> Self {
        Self { counted: Some(counted), ..self }
    }

    /// Takes the count back. Waits for Redis for half a second at most; where it is away, the
    /// other processes count on until the window is over.
    pub async fn record_success(self) {
        self.forget();
        if let Some(counted) = self.counted {
            counted.take_back(self.limit, self.key).await;
        }
    }

    fn forget(&self) {
        let mut windows = self.limit.lock();
        if let Some(window) = windows.get_mut(&self.key) {
            window.failures = window.failures.saturating_sub(1);
            if window.failures == 0 {
                windows.remove(&self.key);
            }
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
    fn a_window_ends_and_memory_is_bounded() {
        let failures = FailureLimit::new("test", 1, Duration::from_millis(20));
        assert!(failures.begin(key(0)).is_ok());
        assert!(failures.begin(key(0)).is_err_and(|wait| wait <= Duration::from_millis(20)));
        std::thread::sleep(Duration::from_millis(25));
        assert!(failures.begin(key(0)).is_ok());

        let failures = FailureLimit::new("test", 1, Duration::from_secs(60));
        for n in 0..300_000 {
            assert!(failures.begin(key(n)).is_ok());
        }
        assert!(failures.lock().len() <= KEYS_MAX);
    }
}
