//! How long to wait before Redis is tried again.

use std::time::Duration;

use rand::RngExt as _;

const FIRST: Duration = Duration::from_millis(25);
const LONGEST: Duration = Duration::from_secs(1);

/// Doubles from 25 ms to 1 s; each wait is between half of it and all of it, so that processes
/// do not come together.
#[derive(Debug)]
pub(super) struct Backoff(Duration);

impl Backoff {
    pub(super) fn new() -> Self {
        Self(FIRST)
    }

    pub(super) fn next(&mut self) -> Duration {
        let longest = self.0;
        self.0 = (longest * 2).min(LONGEST);
        longest.mul_f64(rand::rng().random_range(0.5..=1.0))
    }
}
