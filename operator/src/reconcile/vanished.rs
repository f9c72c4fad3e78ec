//! Objects that vanished without being finalized, because a finalizer was removed by hand or the cluster was restored from a
//! backup.
//!
//! An orphan is the row of such an object. It is logged at once, and what it is a credential for ends; the row is released
//! after a day. A predecessor was created again with the same kind, namespace, name and tenant: it will not be back, so its
//! row is released at once. The rows of predecessors in clusters that were released are adopted instead.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use kube::ResourceExt as _;
use kube::core::DeserializeGuard;
use kube::runtime::reflector;
use tempmail_store::{Resource, ResourceIdentity};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::context::Context;
use super::driver::{Reconcile, Release, ReleaseTerms};
use super::grant;
use super::ownership::identity;
use super::refusal::dynamic_api;
use super::work_queue::ObjectKey;
use crate::error::ReconcileError;
use crate::kind::{Kind, uid, uid_of};
use crate::status::message::adopted_from_cluster;

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
    let synced = timeout(INTERVAL, context.kinds.of::<K>().synced.synced());
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
                tracing::warn!(kind = %K::kind(&()), %error, "the orphan sweep failed");
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
    let mut recorded = context.store.list_resources(context.cluster, &K::kind(&())).await?;
    let synced = &context.kinds.of::<K>().synced;
    recorded.retain(|resource| synced.covers(resource.identity.namespace.as_deref()));
    let present: HashSet<Uuid> = objects.state().iter().map(|object| uid(&**object)).collect();
    let mut orphans: u32 = 0;
    for resource in recorded {
        if present.contains(&resource.identity.uid) {
            if resource.missing_since.is_some() {
                context.store.record_present(context.epoch, resource.identity.uid).await?;
                // Its credential ended when it was missed.
                let ResourceIdentity { kind, namespace, name, .. } = resource.identity;
                context.kinds.enqueue(&kind, ObjectKey { namespace, name });
            }
        } else if !release_orphan::<K>(&resource, context).await? {
            orphans = orphans.saturating_add(1);
        }
    }
    metrics::gauge!("tempmail_operator_orphans", "kind" => K::kind(&())).set(orphans);
    Ok(())
}

/// Records that an object is missing, which ends a credential, or releases its row by its deletion policy once it has been
/// missing long enough. Returns whether the row is released.
async fn release_orphan<K: Reconcile>(
    resource: &Resource,
    context: &Context,
) -> Result<bool, ReconcileError> {
    let (now, identity) = (context.clock.now(), &resource.identity);
    let (kind, uid, retained) = (&identity.kind, identity.uid, identity.retained);
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
    let api = dynamic_api::<K>(identity.namespace.as_deref(), context);
    let found = api.get_metadata_opt(&identity.name).await?;
    Ok(found.is_some_and(|found| uid_of(&found.metadata) == identity.uid))
}

/// A predecessor of the object whose row is not released. `tenant` is the object's, `None` for kinds without
/// one.
pub(crate) async fn find_predecessor<K: Kind>(
    object: &K,
    tenant: Option<Uuid>,
    context: &Context,
) -> Result<Option<Resource>, ReconcileError> {
    let (cluster, identity) = (context.cluster, identity(object, context));
    let predecessors = context.store.list_predecessors(cluster, &identity, tenant, object.declared()).await?;
    Ok(predecessors.into_iter().next())
}

/// Releases the row of a predecessor, if there is one, by its own deletion policy and its namespace's grants, which one of
/// a former namespace does not have; a row that the object is to `adopt` is retained. A tenant, custom domain or mailbox of
/// a released cluster becomes the object's own, inactive; its credential has to be made new.
pub(crate) async fn release_predecessor<K: Reconcile>(
    object: &K,
    predecessor: Option<&Resource>,
    adopt: Option<Uuid>,
    context: &Context,
) -> Result<(), ReconcileError> {
    let Some(Resource { identity, cluster, row_id, .. }) = predecessor else { return Ok(()) };
    ensure_current(object, context).await?;
    let retained = identity.retained || (row_id.is_some() && *row_id == adopt);
    let (kind, former) = (&identity.kind, identity.uid);
    if *cluster != context.cluster && object.declared().is_some() {
        let adopted = context.store.adopt_released(context.epoch, uid(object), former).await?;
        tracing::info!(kind, uid = %former, %cluster, "adopted the row of an object of a released cluster");
        if let Some(id) = adopted {
            publish_adopted(object, id, *cluster, context).await;
        }
        return Ok(());
    }
    let granting =
        grant::find_granting(identity.namespace.as_deref(), identity.namespace_uid, context).await?;
    if K::release(former, &ReleaseTerms { retained, granting }, context).await? == Release::Released {
        tracing::warn!(kind, uid = %former, retained, "released the row of an object that vanished and was created again");
    }
    Ok(())
}

/// Publishes that an object adopted the row `id` of an object of a released cluster.
pub(crate) async fn publish_adopted<K: Kind>(object: &K, id: Uuid, cluster: Uuid, context: &Context) {
    context.events.publish(object, &adopted_from_cluster(&K::kind(&()), id, cluster)).await;
}

/// Fails with [`ReconcileError::Stale`] if the object, which was read a while ago, is gone itself.
pub(crate) async fn ensure_current<K: Kind>(object: &K, context: &Context) -> Result<(), ReconcileError> {
    let current = object.api(&context.client).get_metadata_opt(&object.name_any()).await?;
    if current.is_none_or(|current| current.uid() != object.uid()) {
        return Err(ReconcileError::Stale);
    }
    Ok(())
}

/// A predecessor, for tests of plans.
#[cfg(test)]
pub(crate) fn example_predecessor() -> Resource {
    use tempmail_store::ResourceIdentity;

    Resource {
        identity: ResourceIdentity {
            uid: Uuid::from_u128(99),
            kind: "Tenant".to_owned(),
            namespace: None,
            namespace_uid: None,
            name: "former".to_owned(),
            retained: false,
        },
        cluster: Uuid::from_u128(97),
        row_id: Some(Uuid::from_u128(98)),
        tenant: None,
        verify_handled: None,
        rotate_handled: None,
        reenable_handled: None,
        missing_since: None,
    }
}
