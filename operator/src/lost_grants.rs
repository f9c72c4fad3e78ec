//! Lost grants: what a namespace was granted ends in Postgres as soon as its grant is lost, whatever its objects say: they
//! may be paused, without a finalizer, or gone. What was lost while no operator ran is found at the start.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tempmail_store::{ResourceKind, UsedGrant};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::error::ReconcileError;
use crate::reconcile::context::Context;
use crate::reconcile::dependents::Dependency;
use crate::reconcile::grant;

/// Interval between comparisons without a change of Tenants or namespaces.
const INTERVAL: Duration = Duration::from_secs(600);
/// Changes within this time are compared once.
const DEBOUNCE: Duration = Duration::from_millis(100);
/// Delay after which a failed comparison is repeated.
const RETRY: Duration = Duration::from_secs(1);
/// Grants that are ended concurrently.
const CONCURRENCY: usize = 8;

/// Ends lost grants when Tenants or namespaces change, and periodically, until `stop` is cancelled.
pub(crate) async fn run(context: Arc<Context>, stop: CancellationToken) {
    let synced = async {
        context.cache_syncs.of(ResourceKind::Tenant).synced().await;
        context.cache_syncs.namespaces.synced().await;
    };
    let Some(()) = stop.run_until_cancelled(synced).await else { return };
    while let Some(ended) = stop.run_until_cancelled(end_lost_grants(&context)).await {
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
async fn end_lost_grants(context: &Context) -> Result<(), ReconcileError> {
    // Read first: Tenants and namespaces are cached before anything is recorded of them.
    let used = context.store.list_used_grants(context.cluster).await?;
    let mut failed = Ok(());
    for used in used.chunks(CONCURRENCY) {
        let ended = join_all(used.iter().map(|grant| end_if_lost(grant, context))).await;
        // One that fails does not hold up the others.
        failed = ended.into_iter().fold(failed, Result::and);
    }
    failed
}

async fn end_if_lost(used: &UsedGrant, context: &Context) -> Result<(), ReconcileError> {
    if !grant::is_lost(used, context).await? {
        return Ok(());
    }
    context.store.end_grant(context.epoch, context.cluster, used, context.clock.now()).await?;
    tracing::info!(tenant = %used.tenant, namespace = used.namespace, "ended what the namespace was granted");
    // The grant may be back already.
    context.enqueue_dependents(Dependency::Namespace(&used.namespace));
    Ok(())
}
