//! Notes which objects there are, so that rows of objects that vanish are found.

use kube::ResourceExt as _;
use tempmail_store::{Resource, ResourceIdentity};

use crate::context::Context;
use crate::controller::uid;
use crate::failure::Failure;
use crate::kind::Kind;

/// Which object it is.
pub(crate) fn identity<K: Kind>(object: &K) -> ResourceIdentity {
    ResourceIdentity {
        uid: uid(object),
        kind: K::KIND,
        namespace: object.meta().namespace.clone(),
        name: object.name_any(),
        retained: object.is_retained(),
    }
}

/// The object as the store has it; noted first where it is new, or says something else about its
/// deletion.
pub(crate) async fn noted<K: Kind>(object: &K, context: &Context) -> Result<Resource, Failure> {
    let identity = identity(object);
    let known = context.store.find_resource(identity.uid).await?;
    match known {
        Some(known) if known.identity == identity && known.missing_since.is_none() => Ok(known),
        known => {
            context.store.record_resource(context.epoch, context.cluster, &identity).await?;
            let fresh = Resource {
                identity: identity.clone(),
                row_id: None,
                verify_handled: None,
                rotate_handled: None,
                reenable_handled: None,
                missing_since: None,
            };
            Ok(Resource { identity, missing_since: None, ..known.unwrap_or(fresh) })
        }
    }
}
