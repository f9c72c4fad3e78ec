//! What keeps an object from being reconciled, and what its status says about it: a step that is refused, an object that
//! can't be decoded, an outage of Postgres.

use kube::ResourceExt as _;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::ObjectMeta;
use kube::runtime::controller::Action;
use serde_json::json;
use tempmail_crds::KindStatus;
use tempmail_store::{DeclareError, LimitUsage, RowHolder};

use super::context::Context;
use super::driver::{Reconcile, Release, ReleaseTerms, is_paused};
use super::grant;
use super::ownership::remove_finalizer;
use super::secret::SecretError;
use crate::error::ReconcileError;
use crate::kind::{Kind, uid, uid_of};
use crate::status::message::object_unreadable;
use crate::status::{ConditionStatus, ConditionType, ConditionUpdate, RETRY_SOON, Reason};

/// Reason of the conditions that the API server gives to an object when it is created.
const PENDING: &str = "Pending";

/// A step that is refused, now and on each retry until something else changes. It becomes a status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The row can't be declared for another reason than those below.
    Row(DeclareError),
    /// Another object has the row: this one, if it is known.
    Claimed(Option<RowHolder>),
    /// An object of another cluster has the row.
    HeldByAnotherCluster(RowHolder),
    /// The tenant has as many rows of the kind as it may have.
    LimitReached(LimitUsage),
    /// The Secret can't be written, or read.
    Secret(SecretError),
}

/// A step that was not carried out.
#[derive(Debug)]
pub(crate) enum StepError {
    /// The row can't be declared.
    Row(DeclareError),
    /// The Secret can't be written.
    Secret(SecretError),
    /// It failed, and is retried.
    Failed(ReconcileError),
}

/// Finds out what there is to say about a row that can't be declared.
pub(crate) async fn explain<K: Kind>(
    object: &K,
    error: DeclareError,
    context: &Context,
) -> Result<Refusal, ReconcileError> {
    let holder = find_holder(object, context).await?;
    Ok(match (error, holder) {
        (_, Some(holder)) if holder.cluster != context.cluster => Refusal::HeldByAnotherCluster(holder),
        (DeclareError::ManagedByAnother, holder) => Refusal::Claimed(holder),
        (DeclareError::LimitReached, _) => Refusal::LimitReached(find_usage(object, context).await?),
        (error, _) => Refusal::Row(error),
    })
}

/// The other object that has what this one declares.
async fn find_holder<K: Kind>(object: &K, context: &Context) -> Result<Option<RowHolder>, ReconcileError> {
    let Some(declared) = object.declared() else { return Ok(None) };
    let tenant = object.tenant_name();
    Ok(context.store.find_row_holder(uid(object), &K::kind(&()), declared, tenant).await?)
}

/// How many rows of the object's kind its tenant has, and may have.
async fn find_usage<K: Kind>(object: &K, context: &Context) -> Result<LimitUsage, ReconcileError> {
    let name = object.tenant_name().ok_or(ReconcileError::Stale)?;
    let tenant = context.store.find_tenant(name, context.clock.now()).await?.ok_or(ReconcileError::Stale)?;
    K::usage(&tenant).ok_or(ReconcileError::Stale)
}

impl From<DeclareError> for StepError {
    fn from(error: DeclareError) -> Self {
        match error {
            // The Tenant was replaced after it was observed.
            DeclareError::TenantChanged => Self::Failed(ReconcileError::Stale),
            error => Self::Row(error),
        }
    }
}

impl From<SecretError> for StepError {
    fn from(error: SecretError) -> Self {
        Self::Secret(error)
    }
}

impl<E: Into<ReconcileError>> From<E> for StepError {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Sets the conditions of an object that can't be decoded, which does not affect other objects; finalizes one that is deleted, by the deletion
/// policy that was recorded last.
pub(crate) async fn report_unreadable<K: Reconcile>(
    metadata: &ObjectMeta,
    error: &str,
    context: &Context,
) -> Result<Action, ReconcileError> {
    let api = dynamic_api::<K>(metadata.namespace.as_deref(), context);
    if metadata.deletion_timestamp.is_some() {
        return finalize_unreadable::<K>(&api, metadata, context).await;
    }
    let name = metadata.name.as_deref().unwrap_or_default();
    let Some(object) = api.get_opt(name).await? else { return Ok(Action::await_change()) };
    if !is_reported(&object) {
        tracing::warn!(kind = %K::kind(&()), uid = metadata.uid, error, "an object can't be decoded");
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

/// Releases the row of a deleted object by the deletion policy that was recorded last, then removes the finalizer.
async fn finalize_unreadable<K: Reconcile>(
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
    remove_finalizer(api, metadata, context).await?;
    Ok(Action::await_change())
}

/// The API of the kind's objects of a namespace, or of the cluster, whether they can be decoded or not.
pub(super) fn dynamic_api<K: Kind>(namespace: Option<&str>, context: &Context) -> Api<DynamicObject> {
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

/// Says in the conditions of an object that no reconciliation has written, and in an event, that Postgres is unavailable.
/// Conditions that were written stay as they are.
pub(crate) async fn report_outage<K: Kind>(object: &K, context: &Context) {
    if !is_new(object) || is_paused(object) || object.meta().deletion_timestamp.is_some() {
        return;
    }
    match context.status.report_unavailable(object).await {
        Ok(()) | Err(ReconcileError::Stale) => {}
        Err(error) => {
            let (kind, namespace, name) = (K::kind(&()), object.namespace(), object.name_any());
            tracing::warn!(%kind, namespace, name, %error, "a status can't report the outage of Postgres");
        }
    }
}

/// Whether the object has no conditions but those of its creation.
fn is_new<K: Kind>(object: &K) -> bool {
    let conditions = object.status().map(KindStatus::conditions).unwrap_or_default();
    conditions.iter().all(|condition| condition.reason == PENDING)
}
