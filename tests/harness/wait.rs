//! Waiting for events. A deadline here only tells a hang from an answer: it is far above what
//! anything takes, and no test is about speed.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

/// Longest that anything may take before a test calls it hung.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// Asks again until `probe` gives something.
///
/// # Panics
/// Nothing came within [`DEADLINE`].
pub async fn eventually<T, F>(what: &str, mut probe: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let give_up = Instant::now() + DEADLINE;
    loop {
        if let Some(found) = probe().await {
            return found;
        }
        assert!(Instant::now() < give_up, "never happened: {what}");
        sleep(Duration::from_millis(20)).await;
    }
}

/// The future's value.
///
/// # Panics
/// It took longer than [`DEADLINE`].
pub async fn within_deadline<T>(what: &str, future: impl Future<Output = T>) -> T {
    match timeout(DEADLINE, future).await {
        Ok(value) => value,
        Err(_) => panic!("never happened: {what}"),
    }
}
