//! What ties a row to its object: a finalizer, which keeps a deleted object until its row is released, and a record of the
//! object in Postgres, by which the rows of objects that vanish are found.

use std::borrow::Cow;
use std::fmt::Debug;

use kube::api::{ObjectMeta, Patch, PatchParams};
use kube::runtime::reflector::ObjectRef;
use kube::{Api, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::json;
use tempmail_store::{Resource, ResourceIdentity};

use super::context::Context;
use crate::error::ReconcileError;
use crate::kind::{Kind, uid};

/// The entry of `metadata.finalizers`.
const FINALIZER: &str = "tempmail.dev/operator";
/// Field manager of the finalizer.
const FIELD_MANAGER: &str = "tempmail-operator/meta";

/// The object with the finalizer, which is added before anything is created for it.
pub(crate) async fn ensure_finalizer<'a, K: Kind>(
    object: &'a K,
    context: &Context,
) -> Result<Cow<'a, K>, ReconcileError> {
    let metadata = object.meta();
    if has_finalizer(metadata) {
        return Ok(Cow::Borrowed(object));
    }
    let finalizers = finalizers(metadata).chain([FINALIZER]).collect();
    Ok(Cow::Owned(write_finalizers(&object.api(&context.client), metadata, finalizers, context).await?))
}

/// Removes the finalizer; an object that is gone already needs no removal.
pub(crate) async fn remove_finalizer<K>(
    api: &Api<K>,
    metadata: &ObjectMeta,
    context: &Context,
) -> Result<(), ReconcileError>
where
    K: Clone + Debug + DeserializeOwned,
{
    if !has_finalizer(metadata) {
        return Ok(());
    }
    let finalizers = finalizers(metadata).filter(|one| *one != FINALIZER).collect();
    match write_finalizers(api, metadata, finalizers, context).await {
        Ok(_) => Ok(()),
        Err(ReconcileError::Kubernetes(kube::Error::Api(status))) if status.is_not_found() => Ok(()),
        Err(error) => Err(error),
    }
}

fn finalizers(metadata: &ObjectMeta) -> impl Iterator<Item = &str> {
    metadata.finalizers.iter().flatten().map(String::as_str)
}

fn has_finalizer(metadata: &ObjectMeta) -> bool {
    finalizers(metadata).any(|one| one == FINALIZER)
}

/// A merge patch replaces the list as a whole, so it is bound to the version that was read.
async fn write_finalizers<K>(
    api: &Api<K>,
    metadata: &ObjectMeta,
    finalizers: Vec<&str>,
    context: &Context,
) -> Result<K, ReconcileError>
where
    K: Clone + Debug + DeserializeOwned,
{
    // What a former leader read is out of date.
    context.store.check_epoch(context.epoch).await?;
    let patch = json!({"metadata": {
        "uid": metadata.uid,
        "resourceVersion": metadata.resource_version,
        "finalizers": finalizers,
    }});
    let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let name = metadata.name.as_deref().unwrap_or_default();
    Ok(api.patch(name, &parameters, &Patch::Merge(patch)).await?)
}

/// The identity of an object.
pub(crate) fn identity<K: Kind>(object: &K, context: &Context) -> ResourceIdentity {
    let namespace = object.namespace();
    let found = namespace.as_deref().and_then(|name| context.namespaces.get(&ObjectRef::new(name)));
    ResourceIdentity {
        uid: uid(object),
        kind: K::kind(&()).into_owned(),
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
        context.namespaces_synced.wait().await?;
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
