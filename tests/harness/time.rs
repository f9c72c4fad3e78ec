//! Jumps of tokio's clock, by which roles in the test process measure their timeouts.

use std::future::Future;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::wait::DEADLINE;

/// Moves tokio's clock forward: timeouts that end by then end now. Postgres and the business clock are unaffected.
///
/// # Panics
/// The runtime has several threads: use `#[tokio::test]` without a flavor.
pub async fn jump(by: Duration) {
    tokio::time::pause();
    tokio::time::advance(by).await;
    tokio::time::resume();
}

/// Jumps by `step` again and again, until `probe` returns something.
///
/// # Panics
/// It returned nothing within [`DEADLINE`] of real time.
pub async fn jump_until<T, F>(what: &str, step: Duration, mut probe: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let give_up = Instant::now() + DEADLINE;
    loop {
        jump(step).await;
        if let Some(found) = probe().await {
            return found;
        }
        assert!(Instant::now() < give_up, "never happened: {what}");
        sleep(Duration::from_millis(20)).await;
    }
}
