//! Counts failures a key within a window that begins with the first of them.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Keys kept at most: beyond it the oldest windows are forgotten early.
const KEYS_MAX: usize = 100_000;

struct Window {
    began: Instant,
    failures: u32,
}

/// Failures by key. Memory: 100,000 keys at most.
pub(crate) struct Failures<K> {
    most: u32,
    window: Duration,
    windows: Mutex<HashMap<K, Window>>,
}

impl<K: Hash + Eq + Clone> Failures<K> {
    pub(crate) fn new(most: u32, window: Duration) -> Self {
        Self { most, window, windows: Mutex::new(HashMap::new()) }
    }

    /// Counts one failure under `key` beforehand.
    ///
    /// # Errors
    /// Time until the key's window is over, where it has as many as it may.
    pub(crate) fn begin(&self, key: K) -> Result<Attempt<'_, K>, Duration> {
        let now = Instant::now();
        let mut windows = self.lock();
        if windows.len() >= KEYS_MAX {
            self.make_room(&mut windows, now);
        }
        let window = windows.entry(key.clone()).or_insert(Window { began: now, failures: 0 });
        let age = now.duration_since(window.began);
        if age >= self.window {
            *window = Window { began: now, failures: 0 };
        } else if window.failures >= self.most {
            return Err(self.window - age);
        }
        window.failures += 1;
        Ok(Attempt { failures: self, key })
    }

    /// Forgets what is over; where that is little, the older half of the rest.
    fn make_room(&self, windows: &mut HashMap<K, Window>, now: Instant) {
        windows.retain(|_, window| now.duration_since(window.began) < self.window);
        if windows.len() > KEYS_MAX / 2 {
            let mut began: Vec<Instant> = windows.values().map(|window| window.began).collect();
            let (_, median, _) = began.select_nth_unstable(KEYS_MAX / 4);
            let median = *median;
            windows.retain(|_, window| window.began > median);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Window>> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Something that counts as failed unless it is said to have succeeded.
pub(crate) struct Attempt<'a, K: Hash + Eq + Clone> {
    failures: &'a Failures<K>,
    key: K,
}

impl<K: Hash + Eq + Clone> Attempt<'_, K> {
    /// Takes the count back.
    pub(crate) fn succeeded(self) {
        let mut windows = self.failures.lock();
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
    use super::*;

    #[test]
    fn a_window_ends_and_memory_is_bounded() {
        let failures = Failures::new(1, Duration::from_millis(20));
        assert!(failures.begin(0_u32).is_ok());
        assert!(failures.begin(0).is_err_and(|wait| wait <= Duration::from_millis(20)));
        std::thread::sleep(Duration::from_millis(25));
        assert!(failures.begin(0).is_ok());

        let failures = Failures::new(1, Duration::from_secs(60));
        for key in 0..300_000_u32 {
            assert!(failures.begin(key).is_ok());
        }
        assert!(failures.lock().len() <= KEYS_MAX);
    }
}
