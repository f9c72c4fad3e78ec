//! Predecessors: objects that vanished with their finalizer removed by hand, and were created again with
//! the same kind, namespace, name and tenant. They will not be back, so their rows are released at once. The rows of
//! predecessors in clusters that were released are adopted instead.

use tempmail_store::{Resource, ResourceKind};
use uuid::Uuid;

use kube::ResourceExt as _;

use super::context::Context;
use super::driver::{Reconcile, Release, ReleaseTerms};
use super::grant;
use super::recorded::identity;
use crate::error::ReconcileError;
use crate::kind::Kind;
use crate::status::message::adopted_from_cluster;

/// A predecessor of the object whose row is not released. `tenant` is the object's, `None` for kinds without
/// one.
pub(crate) async fn find<K: Kind>(
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
pub(crate) async fn release<K: Reconcile>(
    object: &K,
    predecessor: Option<&Resource>,
    adopt: Option<Uuid>,
    context: &Context,
) -> Result<(), ReconcileError> {
    let Some(Resource { identity, cluster, row_id, .. }) = predecessor else { return Ok(()) };
    ensure_current(object, context).await?;
    let retained = identity.retained || (row_id.is_some() && *row_id == adopt);
    let (kind, uid) = (identity.kind.as_str(), identity.uid);
    let is_adopted = !matches!(identity.kind, ResourceKind::Webhook | ResourceKind::ApiToken);
    if *cluster != context.cluster && is_adopted {
        let adopted = context.store.adopt_released(context.epoch, crate::kind::uid(object), uid).await?;
        tracing::info!(kind, %uid, %cluster, "adopted the row of an object of a released cluster");
        if let Some(id) = adopted {
            publish_adopted(object, id, *cluster, context).await;
        }
        return Ok(());
    }
    let granting =
        grant::find_granting(identity.namespace.as_deref(), identity.namespace_uid, context).await?;
    if K::release(uid, &ReleaseTerms { retained, granting }, context).await? == Release::Released {
        tracing::warn!(kind, %uid, retained, "released the row of an object that vanished and was created again");
    }
    Ok(())
}

/// Publishes that an object adopted the row `id` of an object of a released cluster.
pub(crate) async fn publish_adopted<K: Kind>(object: &K, id: Uuid, cluster: Uuid, context: &Context) {
    context.events.publish(object, &adopted_from_cluster(K::KIND, id, cluster)).await;
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
pub(crate) fn example() -> Resource {
    use tempmail_store::ResourceIdentity;

    Resource {
        identity: ResourceIdentity {
            uid: Uuid::from_u128(99),
            kind: ResourceKind::Tenant,
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
