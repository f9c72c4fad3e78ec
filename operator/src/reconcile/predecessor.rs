//! Predecessors: objects that vanished with their finalizer removed by hand, and were created again with
//! the same kind, namespace, name and tenant. They will not be back, so their rows are released at once.

use tempmail_store::Resource;
use uuid::Uuid;

use kube::ResourceExt as _;

use super::context::Context;
use super::driver::{Reconcile, Release, ReleaseTerms};
use super::grant;
use super::recorded::identity;
use crate::error::ReconcileError;
use crate::kind::Kind;

/// A predecessor of the object whose row is not released. `tenant` is the object's, `None` for kinds without
/// one.
pub(crate) async fn find<K: Kind>(
    object: &K,
    tenant: Option<Uuid>,
    context: &Context,
) -> Result<Option<Resource>, ReconcileError> {
    let predecessors =
        context.store.list_predecessors(context.cluster, &identity(object, context), tenant).await?;
    Ok(predecessors.into_iter().next())
}

/// Releases the row of a predecessor, if there is one, by its own deletion policy and its namespace's grants, which one of
/// a former namespace does not have; a row that the object is to `adopt` is retained.
pub(crate) async fn release<K: Reconcile>(
    object: &K,
    predecessor: Option<&Resource>,
    adopt: Option<Uuid>,
    context: &Context,
) -> Result<(), ReconcileError> {
    let Some(Resource { identity, row_id, .. }) = predecessor else { return Ok(()) };
    // The object was read a while ago, and may be gone itself.
    let current = object.api(&context.client).get_metadata_opt(&object.name_any()).await?;
    if current.is_none_or(|current| current.uid() != object.uid()) {
        return Err(ReconcileError::Stale);
    }
    let retained = identity.retained || (row_id.is_some() && *row_id == adopt);
    let granting =
        grant::find_granting(identity.namespace.as_deref(), identity.namespace_uid, context).await?;
    let (kind, uid) = (identity.kind.as_str(), identity.uid);
    if K::release(uid, &ReleaseTerms { retained, granting }, context).await? == Release::Released {
        tracing::warn!(kind, %uid, retained, "released the row of an object that vanished and was created again");
    }
    Ok(())
}

/// A predecessor, for tests of plans.
#[cfg(test)]
pub(crate) fn example() -> Resource {
    use tempmail_store::{ResourceIdentity, ResourceKind};

    Resource {
        identity: ResourceIdentity {
            uid: Uuid::from_u128(99),
            kind: ResourceKind::Tenant,
            namespace: None,
            namespace_uid: None,
            name: "former".to_owned(),
            retained: false,
        },
        row_id: Some(Uuid::from_u128(98)),
        verify_handled: None,
        rotate_handled: None,
        reenable_handled: None,
        missing_since: None,
    }
}
