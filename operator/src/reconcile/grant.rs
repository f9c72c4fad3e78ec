//! Grants: an object may use a tenant if the Tenant allows the object's namespace.

use std::sync::Arc;
use std::time::Duration;

use kube::core::DeserializeGuard;
use kube::runtime::reflector::ObjectRef;
use kube::{Resource as _, ResourceExt as _};
use tempmail_crds::Tenant;
use tempmail_store::ResourceKind;
use uuid::Uuid;

use super::context::Context;
use super::namespace_selector::selects;
use crate::error::ReconcileError;
use crate::kind::{Kind, uid};
use crate::status::{Progress, Reason};

/// For this long after an object was created, its Tenant may still be about to be created.
const TENANT_EXPECTED_WITHIN: Duration = Duration::from_secs(60);

/// Whether an object may use the tenant that it refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grant {
    /// The object may use the tenant with this id.
    Granted(Uuid),
    /// The object may use the tenant, which has no row yet.
    TenantNotReady,
    /// The Tenant does not exist, or does not allow the namespace. Which of both is not disclosed.
    NotGranted(Progress),
}

impl Grant {
    /// The tenant's id, or why the object is not accepted.
    pub(crate) fn tenant(self) -> Result<Uuid, (Reason, Progress)> {
        match self {
            Self::Granted(tenant) => Ok(tenant),
            Self::TenantNotReady => Err((Reason::TenantNotReady, Progress::Reconciling)),
            Self::NotGranted(progress) => Err((Reason::TenantRefNotPermitted, progress)),
        }
    }
}

/// Whether an object may use the tenant that it refers to.
pub(crate) async fn find<K: Kind>(object: &K, context: &Context) -> Result<Grant, ReconcileError> {
    let Some(tenant) = find_allowing_tenant(object, context).await? else {
        return Ok(Grant::NotGranted(progress(object, context)));
    };
    let resource = context.store.find_resource(uid(&*tenant)).await?;
    Ok(resource.and_then(|resource| resource.row_id).map_or(Grant::TenantNotReady, Grant::Granted))
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
    context.cache_syncs.of(ResourceKind::Tenant).wait().await?;
    context.cache_syncs.namespaces.wait().await?;
    let tenant = object.tenant_name().and_then(|name| context.tenants.get(&ObjectRef::new(name)));
    let namespace = object.namespace().and_then(|name| context.namespaces.get(&ObjectRef::new(&name)));
    let (Some(tenant), Some(namespace)) = (tenant, namespace) else { return Ok(None) };
    if tenant.meta().deletion_timestamp.is_some() {
        return Ok(None);
    }
    let spec = &tenant.0.as_ref().map_err(|_invalid| ReconcileError::CacheNotSynced)?.spec;
    let selector = spec.allowed_namespaces.as_ref();
    let is_allowed =
        selector.is_some_and(|selector| selects(selector, &namespace.name_any(), namespace.labels()));
    Ok(is_allowed.then_some(tenant))
}
