//! The finalizer, which keeps a deleted object until its row is released.

use std::borrow::Cow;
use std::fmt::Debug;

use kube::Api;
use kube::api::{ObjectMeta, Patch, PatchParams};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::context::Context;
use crate::error::ReconcileError;
use crate::kind::Kind;

/// The entry of `metadata.finalizers`.
const FINALIZER: &str = "tempmail.dev/operator";
/// Field manager of the finalizer.
const FIELD_MANAGER: &str = "tempmail-operator/meta";

/// The object with the finalizer, which is added before anything is created for it.
pub(crate) async fn ensure<'a, K: Kind>(
    object: &'a K,
    context: &Context,
) -> Result<Cow<'a, K>, ReconcileError> {
    let metadata = object.meta();
    if has_finalizer(metadata) {
        return Ok(Cow::Borrowed(object));
    }
    let finalizers = finalizers(metadata).chain([FINALIZER]).collect();
    Ok(Cow::Owned(write(&object.api(&context.client), metadata, finalizers, context).await?))
}

/// Removes the finalizer; an object that is gone already needs no removal.
pub(crate) async fn remove<K>(
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
    match write(api, metadata, finalizers, context).await {
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
async fn write<K>(
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
