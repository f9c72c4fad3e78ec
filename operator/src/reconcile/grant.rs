//! Grants: an object may use a tenant if the Tenant allows the object's namespace.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::core::{DeserializeGuard, PartialObjectMeta};
use kube::runtime::reflector::{self, ObjectRef};
use kube::{Api, Resource as _, ResourceExt as _};
use tempmail_crds::Tenant;
use tempmail_store::UsedGrant;
use uuid::Uuid;

use super::context::Context;
use super::namespace_selector::selects;
use crate::error::ReconcileError;
use crate::kind::{Kind, uid};
use crate::status::message::{tenant_not_ready, tenant_ref_not_permitted, tenant_replaced};
use crate::status::{Message, Progress};

/// For this long after an object was created, its Tenant may still be about to be created.
const TENANT_EXPECTED_WITHIN: Duration = Duration::from_secs(60);

/// Whether an object may use the tenant that it refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grant {
    /// The object may use the tenant with this id.
    Granted(Uuid),
    /// The object may use the tenant, which has no row yet.
    TenantNotReady,
    /// The object may use the tenant, but what it had is another one's: that of a former Tenant of this name, with this
    /// id, which was not deleted. Nothing passes from one to the other by itself.
    Replaced(Uuid),
    /// The Tenant does not exist, or does not allow the namespace. Which of both is not disclosed. What the object had is
    /// in the tenant `former`, if it had something.
    NotGranted {
        /// Whether the Tenant is still expected.
        progress: Progress,
        /// The tenant that the object had.
        former: Option<Uuid>,
    },
}

impl Grant {
    /// The tenant's id, or why `object` is not accepted.
    pub(crate) fn tenant<K: Kind>(self, object: &K) -> Result<Uuid, (Message, Progress)> {
        let name = object.tenant_name().unwrap_or_default();
        match self {
            Self::Granted(tenant) => Ok(tenant),
            Self::TenantNotReady => Err((tenant_not_ready(name), Progress::Reconciling)),
            Self::Replaced(former) => Err((tenant_replaced(name, former), Progress::Stalled)),
            Self::NotGranted { progress, former } => {
                let namespace = object.meta().namespace.as_deref().unwrap_or_default();
                Err((tenant_ref_not_permitted(name, namespace, former), progress))
            }
        }
    }
}

/// Whether an object, as it is recorded, may use the tenant that it refers to.
pub(crate) async fn find<K: Kind>(
    object: &K,
    recorded: &tempmail_store::Resource,
    context: &Context,
) -> Result<Grant, ReconcileError> {
    let Some(tenant) = find_allowing_tenant(object, context).await? else {
        let former = find_former(recorded, None, context).await?;
        return Ok(Grant::NotGranted { progress: progress(object, context), former });
    };
    let resource = context.store.find_resource(uid(&*tenant)).await?;
    let Some(tenant) = resource.and_then(|resource| resource.row_id) else {
        return Ok(Grant::TenantNotReady);
    };
    let former = find_former(recorded, Some(tenant), context).await?;
    Ok(former.map_or(Grant::Granted(tenant), Grant::Replaced))
}

/// The tenant that an object had, if it is another one than `tenant`. Of one that was deleted nothing is left, so the object
/// starts over.
async fn find_former(
    recorded: &tempmail_store::Resource,
    tenant: Option<Uuid>,
    context: &Context,
) -> Result<Option<Uuid>, ReconcileError> {
    let Some(former) = recorded.tenant.filter(|former| Some(*former) != tenant) else { return Ok(None) };
    let found = context.store.find_tenant_by_id(former, context.clock.now()).await?;
    Ok(found.map(|former| former.id))
}

/// Whether a missing Tenant is still expected.
fn progress<K: Kind>(object: &K, context: &Context) -> Progress {
    let now = context.clock.now();
    let age = now.duration_since(object.creation_timestamp().map_or(now, |created| created.0));
    if age.unsigned_abs() < TENANT_EXPECTED_WITHIN { Progress::Reconciling } else { Progress::Stalled }
}

/// The object's Tenant, if it exists and allows the namespace.
async fn find_allowing_tenant<K: Kind>(
    object: &K,
    context: &Context,
) -> Result<Option<Arc<DeserializeGuard<Tenant>>>, ReconcileError> {
    wait_for_caches(context).await?;
    let tenant = object.tenant_name().and_then(|name| tenants(context).get(&ObjectRef::new(name)));
    let namespace = object.namespace().and_then(|name| context.namespaces.get(&ObjectRef::new(&name)));
    let (Some(tenant), Some(namespace)) = (tenant, namespace) else { return Ok(None) };
    if tenant.meta().deletion_timestamp.is_some() {
        return Ok(None);
    }
    let decoded = tenant.0.as_ref().map_err(|_invalid| ReconcileError::CacheNotSynced)?;
    Ok(allows(decoded, &namespace).then_some(tenant))
}

/// The uids of the Tenants that allow a namespace, of this uid if it is known. One that can't be decoded allows none.
pub(crate) async fn find_granting(
    namespace: Option<&str>,
    namespace_uid: Option<Uuid>,
    context: &Context,
) -> Result<Vec<Uuid>, ReconcileError> {
    let Some(name) = namespace else { return Ok(Vec::new()) };
    wait_for_caches(context).await?;
    let namespace = context.namespaces.get(&ObjectRef::new(name));
    let Some(namespace) = namespace.filter(|namespace| is_same(namespace_uid, uid(&**namespace))) else {
        return Ok(Vec::new());
    };
    let tenants = tenants(context).state();
    let granting =
        tenants.iter().filter(|tenant| tenant.0.as_ref().is_ok_and(|tenant| allows(tenant, &namespace)));
    Ok(granting.map(|tenant| uid(&**tenant)).collect())
}

/// Whether the namespace of a grant has lost it. What can't be undone is not done by a cache that is behind: the API server
/// is asked. A Tenant that can't be decoded takes nothing away, and nothing is known of a namespace that is not watched.
pub(crate) async fn is_lost(used: &UsedGrant, context: &Context) -> Result<bool, ReconcileError> {
    let Some(name) = &used.tenant_name else { return Ok(true) };
    let tenant = tenants(context).get(&ObjectRef::new(name));
    let namespace = context.namespaces.get(&ObjectRef::new(&used.namespace));
    if tenant.zip(namespace).is_some_and(|(tenant, namespace)| is_kept(used, &tenant, &namespace)) {
        return Ok(false);
    }
    let tenants: Api<DeserializeGuard<Tenant>> = Api::all(context.client.clone());
    let Some(tenant) = tenants.get_opt(name).await? else { return Ok(true) };
    if !context.namespaces_synced.covers(Some(&used.namespace)) {
        return Ok(false);
    }
    let namespaces: Api<Namespace> = Api::all(context.client.clone());
    let Some(namespace) = namespaces.get_metadata_opt(&used.namespace).await? else { return Ok(true) };
    Ok(!is_kept(used, &tenant, &namespace))
}

/// Whether this Tenant gives the grant, and to this namespace.
fn is_kept(
    used: &UsedGrant,
    tenant: &DeserializeGuard<Tenant>,
    namespace: &PartialObjectMeta<Namespace>,
) -> bool {
    let allowed = match &tenant.0 {
        Ok(tenant) => allows(tenant, namespace),
        Err(_) => true,
    };
    allowed && used.tenant_object == Some(uid(tenant)) && is_same(used.namespace_uid, uid(namespace))
}

/// Whether a namespace has the uid that was recorded, if one was.
fn is_same(recorded: Option<Uuid>, current: Uuid) -> bool {
    recorded.is_none_or(|recorded| recorded == current)
}

fn allows(tenant: &Tenant, namespace: &PartialObjectMeta<Namespace>) -> bool {
    let selector = tenant.spec.allowed_namespaces.as_ref();
    tenant.metadata.deletion_timestamp.is_none()
        && selector.is_some_and(|selector| selects(selector, &namespace.name_any(), namespace.labels()))
}

/// The cached Tenants.
fn tenants(context: &Context) -> &reflector::Store<DeserializeGuard<Tenant>> {
    &context.kinds.of::<Tenant>().objects
}

async fn wait_for_caches(context: &Context) -> Result<(), ReconcileError> {
    context.kinds.of::<Tenant>().synced.wait().await?;
    context.namespaces_synced.wait().await
}
