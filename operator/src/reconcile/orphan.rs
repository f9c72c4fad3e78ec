//! Orphans: rows of objects that vanished without being finalized, because a finalizer was removed by hand or
//! the cluster was restored from a backup. They are logged at once and released after a day.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use kube::core::DeserializeGuard;
use kube::runtime::reflector;
use tempmail_store::Resource;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::context::Context;
use super::driver::{Reconcile, Release};
use crate::error::ReconcileError;
use crate::kind::uid;

/// Interval between sweeps. The first one starts when the cache is synced, or after this time.
const INTERVAL: Duration = Duration::from_secs(600);
/// How long an object must be missing before its row is released.
const RELEASE_AFTER: SignedDuration = SignedDuration::from_hours(24);

/// Sweeps the orphans of a kind until `stop` is cancelled.
pub(crate) async fn sweep_periodically<K: Reconcile>(
    objects: reflector::Store<DeserializeGuard<K>>,
    context: Arc<Context>,
    stop: CancellationToken,
) {
    // A namespace that can't be listed does not hold up the sweep of the others.
    let synced = timeout(INTERVAL, context.cache_syncs.of(K::KIND).synced());
    if stop.run_until_cancelled(synced).await.is_none() {
        return;
    }
    loop {
        match stop.run_until_cancelled(sweep(&objects, &context)).await {
            Some(Err(ReconcileError::Fenced)) => context.fenced.cancel(),
            Some(Err(error)) => {
                tracing::warn!(kind = K::KIND.as_str(), %error, "the orphan sweep failed");
            }
            Some(Ok(())) | None => {}
        }
        if stop.run_until_cancelled(tokio::time::sleep(INTERVAL)).await.is_none() {
            return;
        }
    }
}

/// Compares the recorded objects of a kind with the cached ones.
async fn sweep<K: Reconcile>(
    objects: &reflector::Store<DeserializeGuard<K>>,
    context: &Context,
) -> Result<(), ReconcileError> {
    // In this order, because an object is cached before it is recorded, and a namespace is listed before its
    // objects are compared. What is in a namespace that is not watched is not missing.
    let mut recorded = context.store.list_resources(context.cluster, K::KIND).await?;
    let synced = context.cache_syncs.of(K::KIND);
    recorded.retain(|resource| synced.covers(resource.identity.namespace.as_deref()));
    let present: HashSet<Uuid> = objects.state().iter().map(|object| uid(&**object)).collect();
    let mut orphans: u32 = 0;
    for resource in recorded {
        if present.contains(&resource.identity.uid) {
            if resource.missing_since.is_some() {
                context.store.record_missing_since(context.epoch, resource.identity.uid, None).await?;
            }
        } else if !release_orphan::<K>(&resource, context).await? {
            orphans = orphans.saturating_add(1);
        }
    }
    metrics::gauge!("tempmail_operator_orphans", "kind" => K::KIND.as_str()).set(orphans);
    Ok(())
}

/// Records that an object is missing, or releases its row by its deletion policy once it has been missing
/// long enough. Returns whether the row is released.
async fn release_orphan<K: Reconcile>(
    resource: &Resource,
    context: &Context,
) -> Result<bool, ReconcileError> {
    let (now, identity) = (context.clock.now(), &resource.identity);
    let (kind, uid, retained) = (identity.kind.as_str(), identity.uid, identity.retained);
    match resource.missing_since {
        None => {
            context.store.record_missing_since(context.epoch, uid, Some(now)).await?;
            tracing::warn!(kind, %uid, "an object vanished without being finalized; its row is kept for a day");
        }
        Some(since) if now.duration_since(since) >= RELEASE_AFTER => {
            match K::release(uid, retained, context).await {
                Ok(Release::Released) => {
                    tracing::warn!(kind, %uid, retained, "released the row of an object missing for a day");
                    return Ok(true);
                }
                Ok(Release::Blocked { reason, .. }) => {
                    tracing::warn!(kind, %uid, reason = reason.as_str(), "a row can't be released yet");
                }
                Err(ReconcileError::Fenced) => return Err(ReconcileError::Fenced),
                Err(error) => tracing::warn!(kind, %uid, %error, "a row can't be released yet"),
            }
        }
        Some(_) => {}
    }
    Ok(false)
}
