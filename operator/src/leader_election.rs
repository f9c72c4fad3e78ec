//! Leader election. A Lease of Kubernetes decides which operator tries to lead; an epoch in Postgres decides
//! whose writes are accepted.

use std::future::Future;

use anyhow::{Context as _, bail};
use kube::Client;
use kube_lease_manager::{LeaseManager, LeaseManagerBuilder};
use tempmail_runtime::config;
use tempmail_runtime::shutdown::Shutdown;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Seconds before the lease expires in which its holder renews it; also the tolerated difference of clocks.
const GRACE_SECONDS: u64 = 5;

/// A candidate in the election.
pub(crate) struct LeaderElection {
    holds_lease: watch::Receiver<bool>,
    task: JoinHandle<kube_lease_manager::Result<LeaseManager>>,
}

impl LeaderElection {
    /// Starts to compete for the Lease, which is created if it does not exist.
    pub(crate) async fn join(client: &Client, settings: &config::Operator) -> anyhow::Result<Self> {
        let mut manager = LeaseManagerBuilder::new(client.clone(), &settings.lease_name)
            .with_namespace(client.default_namespace())
            .with_duration(settings.lease_seconds)
            .with_grace(GRACE_SECONDS.min(settings.lease_seconds / 2));
        if !settings.pod_name.is_empty() {
            manager = manager.with_identity(&settings.pod_name);
        }
        let manager = manager.build().await?;
        let (holds_lease, task) = manager.watch().await;
        Ok(Self { holds_lease, task })
    }

    /// Waits until this operator leads, and runs `work` until `shutdown` drains; then releases the Lease.
    ///
    /// # Errors
    /// The work failed, or another operator became the leader.
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
        let mut holds_lease = self.holds_lease.clone();
        let acquired = shutdown.drain.run_until_cancelled(holds_lease.wait_for(|holds| *holds)).await;
        let Some(acquired) = acquired.map(|acquired| acquired.map(drop)) else {
            drop(holds_lease);
            return self.release().await;
        };
        acquired.context("the task of the lease ended")?;
        tracing::info!("this operator leads");
        leads.set(1.0);
        let done = tokio::select! {
            done = work(shutdown.drain.child_token()) => done,
            _ = holds_lease.wait_for(|holds| !holds) => {
                bail!("another operator leads, or the lease could not be renewed")
            }
            () = shutdown.stop.cancelled() => Ok(()),
        };
        leads.set(0.0);
        drop(holds_lease);
        let released = self.release().await;
        // The error of the work explains more than that of the release.
        done.and(released)
    }

    async fn release(self) -> anyhow::Result<()> {
        drop(self.holds_lease);
        self.task.await.context("the task of the lease panicked")?.context("the lease was not released")?;
        Ok(())
    }
}
