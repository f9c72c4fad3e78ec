//! Keeps an object that is deleted until its row is let go of.

use std::borrow::Cow;
use std::fmt::Debug;

use kube::Api;
use kube::api::{ObjectMeta, Patch, PatchParams};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::context::Context;
use crate::failure::Failure;
use crate::kind::Kind;

/// The entry of `metadata.finalizers`.
pub(crate) const FINALIZER: &str = "tempmail.dev/operator";
/// Who writes it.
const FIELD_MANAGER: &str = "tempmail-operator/meta";

/// The object with the finalizer, which goes before anything is made for it.
pub(crate) async fn ensure<'a, K: Kind>(object: &'a K, context: &Context) -> Result<Cow<'a, K>, Failure> {
    let metadata = object.meta();
    if has_finalizer(metadata) {
        return Ok(Cow::Borrowed(object));
    }
    let finalizers = finalizers(metadata).chain([FINALIZER]).collect();
    Ok(Cow::Owned(write(&object.api(&context.client), metadata, finalizers, context).await?))
}

/// Lets an object go; one that is gone already is gone.
pub(crate) async fn remove<K>(api: &Api<K>, metadata: &ObjectMeta, context: &Context) -> Result<(), Failure>
where
    K: Clone + Debug + DeserializeOwned,
{
    if !has_finalizer(metadata) {
        return Ok(());
    }
    let finalizers = finalizers(metadata).filter(|one| *one != FINALIZER).collect();
    match write(api, metadata, finalizers, context).await {
        Ok(_) => Ok(()),
        Err(Failure::Kubernetes(kube::Error::Api(status))) if status.is_not_found() => Ok(()),
        Err(failure) => Err(failure),
    }
}

fn finalizers(metadata: &ObjectMeta) -> impl Iterator<Item = &str> {
    metadata.finalizers.iter().flatten().map(String::as_str)
}

fn has_finalizer(metadata: &ObjectMeta) -> bool {
    finalizers(metadata).any(|one| one == FINALIZER)
}

/// A list is replaced as a whole, so nobody may have changed the object meanwhile.
async fn write<K>(
    api: &Api<K>,
    metadata: &ObjectMeta,
    finalizers: Vec<&str>,
    context: &Context,
) -> Result<K, Failure>
where
    K: Clone + Debug + DeserializeOwned,
{
    // An operator that leads no longer has looked at what is out of date.
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
