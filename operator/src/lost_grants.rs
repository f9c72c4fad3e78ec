//! Lost grants: what a namespace was granted ends in Postgres as soon as its grant is lost, whatever its objects say: they
//! may be paused, without a finalizer, or gone. What was lost while no operator ran is found at the start.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tempmail_crds::Tenant;
use tempmail_store::{Store, UsedGrant};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::error::ReconcileError;
use crate::reconcile::context::Context;
use crate::reconcile::grant;
use crate::reconcile::watched_kind::Dependency;

/// Interval between comparisons without a change of Tenants or namespaces.
const INTERVAL: Duration = Duration::from_secs(600);
/// Changes within this time are compared once.
const DEBOUNCE: Duration = Duration::from_millis(100);
/// Delay after which a failed comparison is repeated.
const RETRY: Duration = Duration::from_secs(1);
/// Grants that are judged concurrently: each asks the API server again before it is ended.
const CONCURRENCY: usize = 16;
/// Connections to Postgres. They are its own: many reconciliations must not delay the end of access.
const CONNECTIONS: u32 = 2;

/// Ends lost grants when Tenants or namespaces change, and periodically, until `stop` is cancelled.
pub(crate) async fn run(context: Arc<Context>, stop: CancellationToken) {
    let store = context.store.with_own_pool(CONNECTIONS);
    let synced = async {
        context.kinds.of::<Tenant>().synced.synced().await;
        context.namespaces_synced.synced().await;
    };
    let Some(()) = stop.run_until_cancelled(synced).await else { return };
    while let Some(ended) = stop.run_until_cancelled(end_lost_grants(&store, &context)).await {
        let next = match ended {
            Ok(()) => INTERVAL,
            Err(ReconcileError::Fenced) => {
                context.fenced.cancel();
                return;
            }
            Err(error) => {
                tracing::warn!(%error, "lost grants can't be ended, which is retried");
                RETRY
            }
        };
        let changed = async {
            context.grant_changes.notified().await;
            sleep(DEBOUNCE).await;
        };
        if stop.run_until_cancelled(timeout(next, changed)).await.is_none() {
            return;
        }
    }
}

/// Ends all grants that are in use and lost.
async fn end_lost_grants(store: &Store, context: &Context) -> Result<(), ReconcileError> {
    // Read first: Tenants and namespaces are cached before anything is recorded of them.
    let used = store.list_used_grants(context.cluster).await?;
    let ended: Vec<_> = stream::iter(used)
        .map(|grant| async move { end_if_lost(&grant, store, context).await })
        .buffer_unordered(CONCURRENCY)
        .collect()
        .await;
    // One that fails does not hold up the others.
    ended.into_iter().collect()
}

async fn end_if_lost(used: &UsedGrant, store: &Store, context: &Context) -> Result<(), ReconcileError> {
    if !grant::is_lost(used, context).await? {
        return Ok(());
    }
    store.end_grant(context.epoch, context.cluster, used, context.clock.now()).await?;
    tracing::info!(tenant = %used.tenant, namespace = used.namespace, "ended what the namespace was granted");
    // The grant may be back already.
    context.kinds.enqueue_dependents(Dependency::Namespace(&used.namespace));
    Ok(())
}
