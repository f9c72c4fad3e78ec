//! Waiting for events. The deadline only detects a hang: it is far above every expected duration, also
//! on a busy machine, and no test asserts on speed.

use std::future::Future;
use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};

/// Longest wait for any event. All waits of the harness use it.
pub const DEADLINE: Duration = Duration::from_secs(180);

/// Least and longest time between two probes.
const PAUSE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(250));

/// Waits between two probes of what is waited for since `started`: an eighth of that time, since probes take the
/// processor from what they wait for.
pub(crate) async fn next_probe(started: Instant) {
    sleep((started.elapsed() / 8).clamp(PAUSE.0, PAUSE.1)).await;
}

/// Polls `probe` until it returns a value.
///
/// # Panics
/// There is none within [`DEADLINE`] of real time: jumps of tokio's clock do not count.
pub async fn eventually<T, F>(what: &str, mut probe: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let started = Instant::now();
    loop {
        if let Some(found) = probe().await {
            return found;
        }
        assert!(started.elapsed() < DEADLINE, "not within {} s: {what}", DEADLINE.as_secs());
        next_probe(started).await;
    }
}

/// The output of a future.
///
/// # Panics
/// It takes longer than [`DEADLINE`].
pub async fn within_deadline<T>(what: &str, future: impl Future<Output = T>) -> T {
    match timeout(DEADLINE, future).await {
        Ok(value) => value,
        Err(_) => panic!("not within {} s: {what}", DEADLINE.as_secs()),
    }
}
