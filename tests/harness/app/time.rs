//! Jumps of tokio's clock, by which roles in the test process measure their timeouts.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::App;
use crate::wait::{DEADLINE, eventually};

impl App {
    /// Moves tokio's clock forward: timeouts that end by then end now. Postgres and the business clock are unaffected.
    /// Waits first until the API server uses no connection to Postgres, since the wait for one has a timeout, too.
    ///
    /// # Panics
    /// The runtime has several threads: use `#[tokio::test]` without a flavor.
    pub async fn jump(&self, by: Duration) {
        let pool = self.running.api_store.pool();
        eventually("the API server has read what it was notified of", || async {
            (pool.num_idle() == pool.size() as usize).then_some(())
        })
        .await;
        tokio::time::pause();
        tokio::time::advance(by).await;
        tokio::time::resume();
    }

    /// Jumps by `step` again and again, until `probe` returns something.
    ///
    /// # Panics
    /// It returned nothing within [`DEADLINE`] of real time.
    pub async fn jump_until<T, F>(&self, what: &str, step: Duration, mut probe: impl FnMut() -> F) -> T
    where
        F: Future<Output = Option<T>>,
    {
        let give_up = Instant::now() + DEADLINE;
        loop {
            self.jump(step).await;
            if let Some(found) = probe().await {
                return found;
            }
            assert!(Instant::now() < give_up, "never happened: {what}");
            sleep(Duration::from_millis(20)).await;
        }
    }
}
