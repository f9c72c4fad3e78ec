//! Records in Postgres which objects exist, so that rows of objects that vanish are found.

use kube::ResourceExt as _;
use kube::runtime::reflector::ObjectRef;
use tempmail_store::{Resource, ResourceIdentity};

use super::context::Context;
use crate::error::ReconcileError;
use crate::kind::{Kind, uid};

/// The identity of an object.
pub(crate) fn identity<K: Kind>(object: &K, context: &Context) -> ResourceIdentity {
    let namespace = object.namespace();
    let found = namespace.as_deref().and_then(|name| context.namespaces.get(&ObjectRef::new(name)));
    ResourceIdentity {
        uid: uid(object),
        kind: K::KIND,
        namespace_uid: found.map(|namespace| uid(&*namespace)),
        namespace,
        name: object.name_any(),
        retained: object.is_retained(),
    }
}

/// The recorded object. It is recorded first if it is new, was missing, or has another deletion policy; with its namespace,
/// whose grants its row depends on.
pub(crate) async fn ensure_recorded<K: Kind>(
    object: &K,
    context: &Context,
) -> Result<Resource, ReconcileError> {
    if object.meta().namespace.is_some() {
        context.cache_syncs.namespaces.wait().await?;
    }
    let identity = identity(object, context);
    match context.store.find_resource(identity.uid).await? {
        Some(recorded) if recorded.identity == identity && recorded.missing_since.is_none() => Ok(recorded),
        recorded => {
            context.store.record_resource(context.epoch, context.cluster, &identity).await?;
            let new = Resource {
                identity: identity.clone(),
                cluster: context.cluster,
                row_id: None,
                tenant: None,
                verify_handled: None,
                rotate_handled: None,
                reenable_handled: None,
                missing_since: None,
            };
            Ok(Resource { identity, missing_since: None, ..recorded.unwrap_or(new) })
        }
    }
}
