//! Who leads: a Lease of Kubernetes says who may try, an epoch in Postgres says whose writes count.

use std::future::Future;

use anyhow::{Context as _, bail};
use kube::Client;
use kube_lease_manager::{LeaseManager, LeaseManagerBuilder};
use tempmail_runtime::config;
use tempmail_runtime::shutdown::Shutdown;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Seconds before a lease ends in which its holder renews it; also the difference between clocks that
/// is borne.
const GRACE_SECONDS: u64 = 5;

/// A place among those who wait to lead.
pub(crate) struct Lease {
    holds: watch::Receiver<bool>,
    task: JoinHandle<kube_lease_manager::Result<LeaseManager>>,
}

impl Lease {
    /// Waits for the lease from now on; the Lease is made where there is none.
    pub(crate) async fn join(client: &Client, settings: &config::Operator) -> anyhow::Result<Self> {
        let manager = LeaseManagerBuilder::new(client.clone(), &settings.lease_name)
            .with_namespace(client.default_namespace())
            .with_duration(settings.lease_seconds)
            .with_grace(GRACE_SECONDS.min(settings.lease_seconds / 2))
            .build()
            .await?;
        let (holds, task) = manager.watch().await;
        Ok(Self { holds, task })
    }

    /// Waits until it is the leader, and does what a leader does until `shutdown` asks to drain; then
    /// it gives the lease back.
    ///
    /// # Errors
    /// The work failed, or another became the leader meanwhile.
    pub(crate) async fn lead<W>(
        self,
        shutdown: &Shutdown,
        work: impl FnOnce(CancellationToken) -> W,
    ) -> anyhow::Result<()>
    where
        W: Future<Output = anyhow::Result<()>>,
    {
        let leads = metrics::gauge!("tempmail_operator_leads");
        leads.set(0.0);
        let mut holds = self.holds.clone();
        let held = shutdown.drain.run_until_cancelled(holds.wait_for(|holds| *holds)).await;
        let Some(held) = held.map(|held| held.map(drop)) else {
            drop(holds);
            return self.give_back().await;
        };
        held.context("the lease's task ended")?;
        tracing::info!("this operator leads");
        leads.set(1.0);
        let done = tokio::select! {
            done = work(shutdown.drain.child_token()) => done,
            _ = holds.wait_for(|holds| !holds) => bail!("another operator leads, or the lease could not be renewed"),
            () = shutdown.stop.cancelled() => Ok(()),
        };
        leads.set(0.0);
        drop(holds);
        let given_back = self.give_back().await;
        // Why it ended counts more than that the lease could not be given back then.
        done.and(given_back)
    }

    async fn give_back(self) -> anyhow::Result<()> {
        drop(self.holds);
        self.task.await.context("the lease's task panicked")?.context("the lease is not given back")?;
        Ok(())
    }
}
