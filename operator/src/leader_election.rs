//! Leader election. A Lease of Kubernetes decides which operator of a cluster tries to lead; an epoch in Postgres decides
//! whose writes are accepted. Heartbeats show the other clusters over the same database that the operator of this one leads.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, ResourceExt as _};
use kube_lease_manager::{LeaseManager, LeaseManagerBuilder};
use tempmail_runtime::config;
use tempmail_runtime::readiness::Readiness;
use tempmail_runtime::shutdown::Shutdown;
use tempmail_store::{Epoch, Store, StoreError};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::reconcile::context::Context;

/// Seconds before the lease expires in which its holder renews it; also the tolerated difference of clocks.
const GRACE_SECONDS: u64 = 5;
/// Interval between heartbeats. `tempmail cluster release` takes a cluster for gone after 10 minutes without one.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(30);
/// How long the statement of a heartbeat may take.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval at which the operator of a released cluster asks whether it may lead again.
const RETRY: Duration = Duration::from_secs(10);
/// Component of `/readyz`.
const COMPONENT: &str = "cluster";

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

/// The id of the cluster: the uid of the namespace kube-system.
pub(crate) async fn cluster_id(client: &Client) -> anyhow::Result<Uuid> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let system = namespaces.get_metadata("kube-system").await.context("the namespace kube-system")?;
    system.uid().and_then(|uid| uid.parse().ok()).context("kube-system has no uid")
}

/// Acquires the epoch of the cluster. While the cluster is released, this waits, since its rows may belong to another
/// cluster by now, and says so in `readiness` and the log. `None`: `stop` was cancelled.
///
/// # Errors
/// Postgres does not answer.
pub(crate) async fn acquire_epoch(
    store: &Store,
    cluster: Uuid,
    readiness: &Readiness,
    stop: &CancellationToken,
) -> anyhow::Result<Option<Epoch>> {
    loop {
        if let Some(epoch) = store.acquire_epoch(cluster).await.context("the epoch of the leader")? {
            readiness.set_ready(COMPONENT);
            return Ok(Some(epoch));
        }
        let message = released_message(cluster);
        tracing::error!("{message}");
        readiness.set_not_ready(COMPONENT, message);
        if stop.run_until_cancelled(tokio::time::sleep(RETRY)).await.is_none() {
            return Ok(None);
        }
    }
}

fn released_message(cluster: Uuid) -> String {
    format!(
        "this cluster ({cluster}) was released with `tempmail cluster release`, so its objects are not \
         reconciled: uninstall tempmail here, or run `tempmail cluster admit {cluster}` to use the cluster again"
    )
}

/// Records heartbeats of this leader until `stop` is cancelled.
pub(crate) async fn record_heartbeats(context: Arc<Context>, stop: CancellationToken) {
    let store = context.store.within(HEARTBEAT_TIMEOUT);
    while stop.run_until_cancelled(tokio::time::sleep(HEARTBEAT_INTERVAL)).await.is_some() {
        match store.record_heartbeat(context.epoch).await {
            Ok(()) => {}
            Err(StoreError::Fenced) => context.fenced.cancel(),
            Err(error) => tracing::warn!(%error, "the heartbeat of the cluster was not recorded"),
        }
    }
}
