//! What the machine spends while something is measured.

use std::time::{Duration, Instant};

use super::setup::{WebhookBench, WebhookSetup, WorkerProcess};
use crate::measure::millis;

/// Processor time and transactions from one moment to another.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    at: Instant,
    worker: Duration,
    postgres: Duration,
    receivers: Duration,
    transactions: i64,
}

/// What was used between two moments.
#[derive(Debug, Clone, Copy)]
pub struct UsageDelta {
    /// Time that passed.
    pub time: Duration,
    /// Processor time of the worker.
    pub worker: Duration,
    /// Of Postgres, all its processes.
    pub postgres: Duration,
    /// Of the receivers' thread.
    pub receivers: Duration,
    /// Transactions that Postgres committed, ours among them.
    pub transactions: i64,
}

impl Usage {
    /// As it is now.
    ///
    /// # Errors
    /// Postgres does not answer.
    pub async fn measure(
        bench: &WebhookBench,
        at: &WebhookSetup<'_>,
        worker: &WorkerProcess,
    ) -> anyhow::Result<Self> {
        let transactions =
            sqlx::query_scalar("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()")
                .fetch_one(at.store.pool())
                .await?;
        Ok(Self {
            at: Instant::now(),
            worker: worker.process.cpu(),
            postgres: bench.cluster.cpu(),
            receivers: bench.receivers.cpu(),
            transactions,
        })
    }

    /// What was used from this moment to `later`.
    pub fn delta_to(self, later: Self) -> UsageDelta {
        UsageDelta {
            time: later.at - self.at,
            worker: later.worker.saturating_sub(self.worker),
            postgres: later.postgres.saturating_sub(self.postgres),
            receivers: later.receivers.saturating_sub(self.receivers),
            transactions: later.transactions - self.transactions,
        }
    }
}

impl UsageDelta {
    /// Microseconds of the worker, Postgres and the receivers, and transactions, each for one of `of`.
    pub fn each(&self, of: u32) -> Vec<String> {
        let each = |time: Duration| format!("{:.0}", millis(time / of) * 1e3);
        vec![
            each(self.worker),
            each(self.postgres),
            each(self.receivers),
            format!("{:.2}", self.transactions_of(f64::from(of))),
        ]
    }

    /// Milliseconds of the worker and Postgres, and transactions, each a second.
    pub fn a_second(&self) -> Vec<String> {
        let seconds = self.time.as_secs_f64();
        vec![
            format!("{:.1}", millis(self.worker) / seconds),
            format!("{:.1}", millis(self.postgres) / seconds),
            format!("{:.1}", self.transactions_of(seconds)),
        ]
    }

    #[expect(clippy::cast_precision_loss, reason = "far below 2^52 transactions")]
    fn transactions_of(&self, what: f64) -> f64 {
        self.transactions as f64 / what
    }
}
