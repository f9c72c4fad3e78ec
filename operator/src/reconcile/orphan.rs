//! Orphans: rows of objects that vanished without being finalized, because a finalizer was removed by hand or
//! the cluster was restored from a backup. They are logged at once, and what they are credentials for ends; the rows are
//! released after a day.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use kube::core::DeserializeGuard;
use kube::runtime::reflector;
use tempmail_store::{Resource, ResourceIdentity};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::context::Context;
use super::driver::{Reconcile, Release, ReleaseTerms};
use super::trigger::ObjectKey;
use super::{grant, invalid_object};
use crate::error::ReconcileError;
use crate::kind::{uid, uid_of};

/// Interval between sweeps. The first one starts when the cache is synced, or after this time.
const INTERVAL: Duration = Duration::from_secs(600);
/// Delay until the sweep that follows a failure.
const RETRY: Duration = Duration::from_secs(5);
/// How long an object must be missing before its row is released.
const RELEASE_AFTER: SignedDuration = SignedDuration::from_hours(24);

/// What a watch says of objects that are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deletion {
    /// The object of this uid is gone.
    Object(Uuid),
    /// The watch was interrupted: any may be gone.
    Unseen,
}

/// Sweeps the orphans of a kind until `stop` is cancelled: periodically, and when objects are gone.
pub(crate) async fn sweep_periodically<K: Reconcile>(
    objects: reflector::Store<DeserializeGuard<K>>,
    mut deletions: UnboundedReceiver<Deletion>,
    context: Arc<Context>,
    stop: CancellationToken,
) {
    // A namespace that can't be listed does not hold up the sweep of the others.
    let synced = timeout(INTERVAL, context.cache_syncs.of(K::KIND).synced());
    if stop.run_until_cancelled(synced).await.is_none() {
        return;
    }
    let mut next_sweep = Instant::now();
    loop {
        let deletion = stop.run_until_cancelled(timeout_at(next_sweep, deletions.recv())).await;
        let found = match deletion {
            Some(Ok(Some(Deletion::Object(uid)))) => {
                stop.run_until_cancelled(find_orphan::<K>(uid, &context)).await
            }
            Some(Ok(Some(Deletion::Unseen)) | Err(_)) => {
                next_sweep = Instant::now() + INTERVAL;
                stop.run_until_cancelled(sweep(&objects, &context)).await
            }
            Some(Ok(None)) | None => return,
        };
        match found {
            Some(Err(ReconcileError::Fenced)) => context.fenced.cancel(),
            Some(Err(error)) => {
                tracing::warn!(kind = K::KIND.as_str(), %error, "the orphan sweep failed");
                next_sweep = next_sweep.min(Instant::now() + RETRY);
            }
            Some(Ok(())) | None => {}
        }
    }
}

/// Looks at the row of an object that is gone; a finalized one has none.
async fn find_orphan<K: Reconcile>(uid: Uuid, context: &Context) -> Result<(), ReconcileError> {
    match context.store.find_resource(uid).await? {
        Some(resource) => release_orphan::<K>(&resource, context).await.map(|_released| ()),
        None => Ok(()),
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
                context.store.record_present(context.epoch, resource.identity.uid).await?;
                // Its credential ended when it was missed.
                let ResourceIdentity { kind, namespace, name, .. } = resource.identity;
                context.triggers.enqueue(kind, ObjectKey { namespace, name });
            }
        } else if !release_orphan::<K>(&resource, context).await? {
            orphans = orphans.saturating_add(1);
        }
    }
    metrics::gauge!("tempmail_operator_orphans", "kind" => K::KIND.as_str()).set(orphans);
    Ok(())
}

/// Records that an object is missing, which ends a credential, or releases its row by its deletion policy once it has been
/// missing long enough. Returns whether the row is released.
async fn release_orphan<K: Reconcile>(
    resource: &Resource,
    context: &Context,
) -> Result<bool, ReconcileError> {
    let (now, identity) = (context.clock.now(), &resource.identity);
    let (kind, uid, retained) = (identity.kind.as_str(), identity.uid, identity.retained);
    if exists::<K>(identity, context).await? {
        return Ok(false);
    }
    match resource.missing_since {
        Some(since) if now.duration_since(since) >= RELEASE_AFTER => {
            let granting =
                grant::find_granting(identity.namespace.as_deref(), identity.namespace_uid, context).await?;
            match K::release(uid, &ReleaseTerms { retained, granting }, context).await {
                Ok(Release::Released) => {
                    tracing::warn!(kind, %uid, retained, "released the row of an object missing for a day");
                    return Ok(true);
                }
                Ok(Release::Blocked(block)) => {
                    tracing::warn!(kind, %uid, ?block, "a row can't be released yet");
                }
                Err(ReconcileError::Fenced) => return Err(ReconcileError::Fenced),
                Err(error) => tracing::warn!(kind, %uid, %error, "a row can't be released yet"),
            }
        }
        since => {
            context.store.record_missing(context.epoch, uid, now).await?;
            if since.is_none() {
                tracing::warn!(kind, %uid, "an object vanished without being finalized; its row is kept for a day");
            }
        }
    }
    Ok(false)
}

/// Whether the API server has the object: the cache may be behind it.
async fn exists<K: Reconcile>(
    identity: &ResourceIdentity,
    context: &Context,
) -> Result<bool, ReconcileError> {
    let api = invalid_object::api::<K>(identity.namespace.as_deref(), context);
    let found = api.get_metadata_opt(&identity.name).await?;
    Ok(found.is_some_and(|found| uid_of(&found.metadata) == identity.uid))
}
