//! The plan of a Tenant.

use kube::ResourceExt as _;
use tempmail_crds::{
    ApiToken, CustomDomain, Mailbox, Tenant, TenantStatus, TenantUsage, Webhook, annotation,
};
use tempmail_model::retention::RetentionClass;
use tempmail_store::{DeclareError, LimitUsage, Resource, TenantDeclaration, TenantLimits};
use uuid::Uuid;

use crate::kind::Kind as _;
use crate::reconcile::driver::Plan;
use crate::reconcile::namespace_selector;
use crate::reconcile::refusal::Refusal;
use crate::status::{
    ConditionStatus, ConditionType, ConditionUpdate, Message, Progress, StatusUpdate, message,
};

/// What the plan of a Tenant depends on.
#[derive(Debug, Clone)]
pub(crate) struct ObservedTenant {
    /// The object's row.
    pub tenant: Option<tempmail_store::Tenant>,
    /// Whether this row has nothing, so that it is removed in favour of the tenant that the annotation names.
    pub gives_way: bool,
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
        return Plan::Done(not_accepted(message::adoption_invalid()));
    };
    let selector_error = message_of_selector(object);
    let Some(tenant) = &observed.tenant else {
        return match (selector_error, &observed.predecessor) {
            (Some(message), _) => Plan::Done(not_accepted(message)),
            (None, Some(_)) => Plan::Step(TenantStep::ReleasePredecessor { adopt }),
            (None, None) => Plan::Step(TenantStep::Declare { adopt }),
        };
    };
    if !is_as_declared(object, tenant) || observed.gives_way {
        return Plan::Step(TenantStep::Declare { adopt });
    }
    let update = ready(tenant);
    if let Some(message) = selector_error {
        // The suspension and the limits are as declared all the same.
        return Plan::Done(StatusUpdate::not_accepted(update.status, message, Progress::Stalled));
    }
    Plan::Done(match adopt {
        Some(other) if other != tenant.id => {
            update.with_message(message::ready_with_former_tenant(tenant.id))
        }
        _ => update,
    })
}

/// The message about the selector of namespaces, if it is invalid: it selects none.
fn message_of_selector(object: &Tenant) -> Option<Message> {
    let why = namespace_selector::validate(object.spec.allowed_namespaces.as_ref()?).err()?;
    Some(message::selector_invalid(&why))
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
pub(super) fn refused(object: &Tenant, refusal: &Refusal) -> StatusUpdate<TenantStatus> {
    not_accepted(match refusal {
        Refusal::HeldByAnotherCluster(holder) => message::held_by_another_cluster(holder),
        Refusal::Row(DeclareError::NotAdoptable) => {
            message::tenant_not_adoptable(adopted_id(object).ok().flatten())
        }
        // A tenant has neither limits of tenants nor a Secret.
        Refusal::Row(_) | Refusal::Claimed(_) | Refusal::LimitReached(_) | Refusal::Secret(_) => {
            message::tenant_name_taken(&object.name_any())
        }
    })
}

fn not_accepted(message: Message) -> StatusUpdate<TenantStatus> {
    StatusUpdate::not_accepted(TenantStatus::default(), message, Progress::Stalled)
}

fn ready(tenant: &tempmail_store::Tenant) -> StatusUpdate<TenantStatus> {
    let shares = [
        (Mailbox::PLURAL, tenant.mailboxes),
        (CustomDomain::PLURAL, tenant.domains),
        (Webhook::PLURAL, tenant.webhooks),
        (ApiToken::PLURAL, tenant.tokens),
    ];
    let [mailboxes, custom_domains, webhooks, tokens] = shares.map(|(_, share)| share.used);
    let status = TenantStatus {
        tenant_id: Some(tenant.id.to_string()),
        usage: Some(TenantUsage { mailboxes, custom_domains, webhooks, tokens }),
        ..TenantStatus::default()
    };
    let mut update = StatusUpdate::ready(status);
    if tenant.suspended {
        let message = message::suspended(&tenant.name);
        update = update.with(ConditionUpdate::new(ConditionType::Suspended, ConditionStatus::True, message));
    }
    let is_exceeded = |share: &LimitUsage| share.used > i64::from(share.limit);
    let exceeded: Vec<_> = shares.into_iter().filter(|(_, share)| is_exceeded(share)).collect();
    if exceeded.is_empty() {
        return update;
    }
    let message = message::limits_exceeded(&tenant.name, &exceeded);
    update.with(ConditionUpdate::new(ConditionType::QuotaExceeded, ConditionStatus::True, message))
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
