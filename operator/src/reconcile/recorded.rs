//! Records in Postgres which objects exist, so that rows of objects that vanish are found.

use kube::ResourceExt as _;
use tempmail_store::{Resource, ResourceIdentity};

use super::context::Context;
use crate::error::ReconcileError;
use crate::kind::{Kind, uid};

/// The identity of an object.
pub(crate) fn identity<K: Kind>(object: &K) -> ResourceIdentity {
    ResourceIdentity {
        uid: uid(object),
        kind: K::KIND,
        namespace: object.meta().namespace.clone(),
        name: object.name_any(),
        retained: object.is_retained(),
    }
}

/// The recorded object. It is recorded first if it is new, was missing, or has another deletion policy.
pub(crate) async fn ensure_recorded<K: Kind>(
    object: &K,
    context: &Context,
) -> Result<Resource, ReconcileError> {
    let identity = identity(object);
    match context.store.find_resource(identity.uid).await? {
        Some(recorded) if recorded.identity == identity && recorded.missing_since.is_none() => Ok(recorded),
        recorded => {
            context.store.record_resource(context.epoch, context.cluster, &identity).await?;
            let new = Resource {
                identity: identity.clone(),
                row_id: None,
                verify_handled: None,
                rotate_handled: None,
                reenable_handled: None,
                missing_since: None,
            };
            Ok(Resource { identity, missing_since: None, ..recorded.unwrap_or(new) })
        }
    }
}
