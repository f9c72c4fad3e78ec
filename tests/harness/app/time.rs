//! Jumps of tokio's clock, by which roles in the test process measure their timeouts.

use std::time::{Duration, Instant};

use super::App;
use crate::wait::eventually;

/// Real time between two jumps.
const JUMP_INTERVAL: Duration = Duration::from_secs(1);

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

    /// Jumps by `step` again and again, until `probe` returns something. It probes for a while after each jump, since
    /// for the API server a jump is also a time in which the stream was not read: it is, soon after.
    ///
    /// # Panics
    /// It returned nothing within [`DEADLINE`](crate::wait::DEADLINE) of real time.
    pub async fn jump_until<T, F>(&self, what: &str, step: Duration, mut probe: impl FnMut() -> F) -> T
    where
        F: Future<Output = Option<T>>,
    {
        let mut next_jump = Instant::now();
        eventually(what, || {
            let jumps = Instant::now() >= next_jump;
            if jumps {
                next_jump = Instant::now() + JUMP_INTERVAL;
            }
            let found = probe();
            async move {
                if jumps {
                    self.jump(step).await;
                }
                found.await
            }
        })
        .await
    }
}
