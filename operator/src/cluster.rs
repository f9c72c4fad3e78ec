//! The cluster of the operator as the other clusters over the same database know it: its id, whether its operator may lead,
//! and a heartbeat that shows that it does.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, ResourceExt as _};
use tempmail_runtime::readiness::Readiness;
use tempmail_store::{Epoch, Store, StoreError};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::reconcile::context::Context;

/// Interval between heartbeats. `tempmail cluster release` takes a cluster for gone after 10 minutes without one.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(30);
/// How long the statement of a heartbeat may take.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval at which the operator of a released cluster asks whether it may lead again.
const RETRY: Duration = Duration::from_secs(10);
/// Component of `/readyz`.
const COMPONENT: &str = "cluster";

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
