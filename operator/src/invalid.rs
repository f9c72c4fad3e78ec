//! Objects that can't be read: the others go on, and this one says so.

use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::ObjectMeta;
use kube::runtime::controller::Action;
use serde_json::json;

use crate::context::Context;
use crate::controller::uid_of;
use crate::failure::Failure;
use crate::kind::Kind;
use crate::standing::{ConditionType, REFUSED_AGAIN, Reason, Truth};
use crate::status::{FIELD_MANAGER, to_seconds};
use crate::{finalizer, orphan};

/// What to do about it.
const MESSAGE: &str = "The object can't be read by this version of the operator: install the CRDs of the same version, and apply the object again.";

/// Says of an object that it can't be read, if it is not said yet; one that is being deleted is let go
/// of, as it said last.
pub(crate) async fn report<K: Kind>(
    metadata: &ObjectMeta,
    error: &str,
    context: &Context,
) -> Result<Action, Failure> {
    let name = metadata.name.as_deref().unwrap_or_default();
    let (resource, client) = (ApiResource::erase::<K>(&()), context.client.clone());
    let api: Api<DynamicObject> = match &metadata.namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    };
    if metadata.deletion_timestamp.is_some() {
        let uid = uid_of(metadata);
        if let Some(resource) = context.store.find_resource(uid).await?
            && !orphan::release(K::KIND, uid, resource.identity.retained, context).await?
        {
            return Ok(Action::requeue(REFUSED_AGAIN));
        }
        finalizer::remove(&api, metadata, context).await?;
        return Ok(Action::await_change());
    }
    let Some(object) = api.get_opt(name).await? else { return Ok(Action::await_change()) };
    if !is_told(&object) {
        tracing::warn!(kind = K::KIND.as_str(), uid = metadata.uid, error, "an object can't be read");
        let since = to_seconds(context.clock.now()).to_string();
        let condition = |kind: ConditionType, truth: Truth| {
            json!({
                "type": kind.as_str(), "status": truth.as_str(), "reason": Reason::InvalidSpec.as_str(),
                "message": MESSAGE, "lastTransitionTime": since, "observedGeneration": metadata.generation,
            })
        };
        let conditions = [
            condition(ConditionType::Ready, Truth::False),
            condition(ConditionType::Accepted, Truth::False),
            condition(ConditionType::Stalled, Truth::True),
        ];
        let patch = json!({
            "apiVersion": K::api_version(&()),
            "kind": K::kind(&()),
            "metadata": {
                "name": name,
                "namespace": metadata.namespace,
                "uid": metadata.uid,
                "resourceVersion": metadata.resource_version,
            },
            "status": {"observedGeneration": metadata.generation, "conditions": conditions},
        });
        api.patch_status(name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(patch)).await?;
    }
    Ok(Action::await_change())
}

fn is_told(object: &DynamicObject) -> bool {
    let conditions = object.data.pointer("/status/conditions").and_then(|list| list.as_array());
    conditions.into_iter().flatten().any(|one| {
        one["type"] == ConditionType::Accepted.as_str()
            && one["reason"] == Reason::InvalidSpec.as_str()
            && one["observedGeneration"] == json!(object.metadata.generation)
    })
}
