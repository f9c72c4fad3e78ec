//! The plan of a Tenant.

use kube::ResourceExt as _;
use tempmail_crds::{Tenant, TenantStatus, TenantUsage, annotation};
use tempmail_model::retention::RetentionClass;
use tempmail_store::{DeclareError, LimitUsage, Resource, TenantDeclaration, TenantLimits};
use uuid::Uuid;

use crate::reconcile::driver::Plan;
use crate::reconcile::namespace_selector;
use crate::reconcile::refusal::Refusal;
use crate::status::{ConditionStatus, ConditionType, ConditionUpdate, Progress, Reason, StatusUpdate};

/// What the plan of a Tenant depends on.
#[derive(Debug, Clone)]
pub(crate) struct ObservedTenant {
    /// The object's row.
    pub tenant: Option<tempmail_store::Tenant>,
    pub predecessor: Option<Resource>,
}

/// A step for a Tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TenantStep {
    /// Release the row of the predecessor, or retain it if it is to be adopted.
    ReleasePredecessor { adopt: Option<Uuid> },
    /// Create, adopt or update the tenant.
    Declare { adopt: Option<Uuid> },
}

/// Decides on the next step.
pub(super) fn plan(object: &Tenant, observed: &ObservedTenant) -> Plan<TenantStep, TenantStatus> {
    let Ok(adopt) = adopted_id(object) else {
        let update = not_accepted(Reason::InvalidSpec);
        return Plan::Done(update.with_message(
            "The annotation tempmail.dev/adopt-tenant is not the id of a tenant. Correct or remove it.",
        ));
    };
    let selector_error = message_of_selector(object);
    let Some(tenant) = &observed.tenant else {
        return match (selector_error, &observed.predecessor) {
            (Some(why), _) => Plan::Done(not_accepted(Reason::InvalidSpec).with_message(why)),
            (None, Some(_)) => Plan::Step(TenantStep::ReleasePredecessor { adopt }),
            (None, None) => Plan::Step(TenantStep::Declare { adopt }),
        };
    };
    if !is_as_declared(object, tenant) {
        return Plan::Step(TenantStep::Declare { adopt });
    }
    let update = ready(tenant);
    if let Some(why) = selector_error {
        // The suspension and the limits are as declared all the same.
        let update = StatusUpdate::not_accepted(update.status, Reason::InvalidSpec, Progress::Stalled);
        return Plan::Done(update.with_message(why));
    }
    Plan::Done(match adopt {
        Some(other) if other != tenant.id => update.with_message(adopts_no_other(tenant.id)),
        _ => update,
    })
}

/// The message about the selector of namespaces, if it is invalid: it selects none.
fn message_of_selector(object: &Tenant) -> Option<String> {
    let why = namespace_selector::validate(object.spec.allowed_namespaces.as_ref()?).err()?;
    Some(format!(
        "No namespace may use the tenant, because spec.allowedNamespaces is invalid: {why}. Correct the selector."
    ))
}

/// Whether the row is what the object declares.
fn is_as_declared(object: &Tenant, tenant: &tempmail_store::Tenant) -> bool {
    let declared = declaration(object, None);
    tenant.suspended == declared.suspended
        && tenant.retention == declared.limits.retention
        && tenant.mailboxes.limit == declared.limits.mailboxes
        && tenant.domains.limit == declared.limits.domains
        && tenant.webhooks.limit == declared.limits.webhooks
        && tenant.tokens.limit == declared.limits.tokens
        && tenant.mailbox_bytes == declared.limits.mailbox_bytes
}

/// The status of an object whose tenant can't be declared.
pub(super) fn refused(refusal: Refusal) -> StatusUpdate<TenantStatus> {
    match refusal {
        Refusal::Row(DeclareError::NotAdoptable) => not_accepted(Reason::TenantNotAdoptable),
        Refusal::Row(_) => not_accepted(Reason::TenantNameTaken),
        Refusal::Secret(error) => error.status_update(TenantStatus::default()),
    }
}

fn not_accepted(reason: Reason) -> StatusUpdate<TenantStatus> {
    StatusUpdate::not_accepted(TenantStatus::default(), reason, Progress::Stalled)
}

/// The message if the annotation names another tenant than the object has.
fn adopts_no_other(id: Uuid) -> String {
    format!(
        "Resource is ready. The annotation tempmail.dev/adopt-tenant is ignored, because the object has the \
         tenant {id} already. Remove the annotation; to adopt the other tenant, create another Tenant with it."
    )
}

fn ready(tenant: &tempmail_store::Tenant) -> StatusUpdate<TenantStatus> {
    let shares = [tenant.mailboxes, tenant.domains, tenant.webhooks, tenant.tokens];
    let [mailboxes, custom_domains, webhooks, tokens] = shares.map(|share| share.used);
    let status = TenantStatus {
        tenant_id: Some(tenant.id.to_string()),
        usage: Some(TenantUsage { mailboxes, custom_domains, webhooks, tokens }),
        ..TenantStatus::default()
    };
    let is_exceeded = |share: LimitUsage| share.used > i64::from(share.limit);
    let update = StatusUpdate::ready(status);
    if shares.into_iter().any(is_exceeded) {
        let (kind, status) = (ConditionType::QuotaExceeded, ConditionStatus::True);
        return update.with(ConditionUpdate::new(kind, status, Reason::QuotaExceeded));
    }
    update
}

/// The id in the annotation that adopts a tenant.
pub(super) fn adopted_id(object: &Tenant) -> Result<Option<Uuid>, uuid::Error> {
    object.annotations().get(annotation::ADOPT_TENANT).map(|id| id.parse()).transpose()
}

/// The tenant that an object declares.
pub(super) fn declaration(object: &Tenant, adopt: Option<Uuid>) -> TenantDeclaration<'_> {
    let (spec, limits) = (&object.spec, &object.spec.limits);
    TenantDeclaration {
        name: object.metadata.name.as_deref().unwrap_or_default(),
        adopt,
        suspended: spec.suspended,
        limits: TenantLimits {
            retention: i16::try_from(spec.retention_hours)
                .ok()
                .and_then(|hours| RetentionClass::try_from(hours).ok())
                .unwrap_or(RetentionClass::PRO),
            mailboxes: limits.mailboxes,
            domains: limits.custom_domains,
            webhooks: limits.webhooks,
            tokens: limits.tokens,
            mailbox_bytes: limits.mailbox_bytes,
        },
    }
}

#[cfg(test)]
mod tests;
