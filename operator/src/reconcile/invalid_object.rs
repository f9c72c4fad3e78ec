//! Objects that can't be decoded. They say so in their conditions, and do not affect other objects.

use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::ObjectMeta;
use kube::runtime::controller::Action;
use serde_json::json;

use super::context::Context;
use super::driver::{Reconcile, Release, ReleaseTerms};
use super::{finalizer, grant};
use crate::error::ReconcileError;
use crate::kind::{Kind, uid_of};
use crate::status::message::object_unreadable;
use crate::status::{ConditionStatus, ConditionType, ConditionUpdate, RETRY_SOON, Reason};

/// Sets the conditions of an object that can't be decoded; finalizes one that is deleted, by the deletion
/// policy that was recorded last.
pub(crate) async fn reconcile<K: Reconcile>(
    metadata: &ObjectMeta,
    error: &str,
    context: &Context,
) -> Result<Action, ReconcileError> {
    let api = api::<K>(metadata.namespace.as_deref(), context);
    if metadata.deletion_timestamp.is_some() {
        return finalize::<K>(&api, metadata, context).await;
    }
    let name = metadata.name.as_deref().unwrap_or_default();
    let Some(object) = api.get_opt(name).await? else { return Ok(Action::await_change()) };
    if !is_reported(&object) {
        tracing::warn!(kind = K::KIND.as_str(), uid = metadata.uid, error, "an object can't be decoded");
        let condition = |kind, status| ConditionUpdate::new(kind, status, object_unreadable());
        let conditions = [
            condition(ConditionType::Ready, ConditionStatus::False),
            condition(ConditionType::Accepted, ConditionStatus::False),
            condition(ConditionType::Stalled, ConditionStatus::True),
        ];
        context.status.replace_conditions::<K, _>(&api, metadata, &conditions).await?;
    }
    Ok(Action::await_change())
}

async fn finalize<K: Reconcile>(
    api: &Api<DynamicObject>,
    metadata: &ObjectMeta,
    context: &Context,
) -> Result<Action, ReconcileError> {
    let uid = uid_of(metadata);
    if let Some(resource) = context.store.find_resource(uid).await? {
        let granting = grant::find_granting(metadata.namespace.as_deref(), None, context).await?;
        let terms = ReleaseTerms { retained: resource.identity.retained, granting };
        if K::release(uid, &terms, context).await? != Release::Released {
            return Ok(Action::requeue(RETRY_SOON));
        }
    }
    finalizer::remove(api, metadata, context).await?;
    Ok(Action::await_change())
}

/// The API of the kind's objects of a namespace, or of the cluster, whether they can be decoded or not.
pub(super) fn api<K: Kind>(namespace: Option<&str>, context: &Context) -> Api<DynamicObject> {
    let (resource, client) = (ApiResource::erase::<K>(&()), context.client.clone());
    match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    }
}

/// Whether the conditions of this generation were set already.
fn is_reported(object: &DynamicObject) -> bool {
    let conditions = object.data.pointer("/status/conditions").and_then(|list| list.as_array());
    conditions.into_iter().flatten().any(|condition| {
        condition["type"] == ConditionType::Accepted.as_str()
            && condition["reason"] == Reason::InvalidSpec.as_str()
            && condition["observedGeneration"] == json!(object.metadata.generation)
    })
}
