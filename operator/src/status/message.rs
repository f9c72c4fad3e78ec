//! The messages of conditions and events: what is, then what to do, with the names and values that it is about. Each one is
//! made by a function here, which has its examples in `reference.rs`. None has a credential, the local part of an address, or
//! the name of an object that the reader's tenant does not have.

mod credential;
mod domain;

use tempmail_store::{LimitUsage, RowHolder};
use uuid::Uuid;

use super::reason::Reason;

pub(crate) use self::credential::*;
pub(crate) use self::domain::*;

/// Maximum length in bytes: the definitions allow no longer condition, and the API server no longer event.
const TEXT_MAX: usize = 1024;

/// A reason, and what it means here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) reason: Reason,
    pub(super) text: String,
}

impl Message {
    fn new(reason: Reason, text: impl Into<String>) -> Self {
        let mut text = text.into();
        text.truncate(text.floor_char_boundary(TEXT_MAX));
        Self { reason, text }
    }
}

pub(crate) fn ready() -> Message {
    Message::new(Reason::Ready, "Resource is ready.")
}

/// A Tenant is ready, and has another tenant than its annotation names.
pub(crate) fn ready_with_former_tenant(id: Uuid) -> Message {
    Message::new(
        Reason::Ready,
        format!(
            "Resource is ready. The annotation tempmail.dev/adopt-tenant is ignored: the object has the \
             tenant {id}, which is in use; or the tenant in the annotation does not exist, or another Tenant \
             manages it. Correct or remove the annotation. To adopt the other tenant, delete what this one \
             has, or create another Tenant with the annotation."
        ),
    )
}

pub(crate) fn accepted() -> Message {
    Message::new(Reason::Accepted, "Resource is accepted.")
}

pub(crate) fn accepted_by(tenant: &str) -> Message {
    Message::new(Reason::Accepted, format!("Resource is accepted by tenant {tenant}."))
}

/// The same words whether the Tenant exists or not. `former` is the tenant that the object had.
pub(crate) fn tenant_ref_not_permitted(tenant: &str, namespace: &str, former: Option<Uuid>) -> Message {
    let mut text = format!(
        "There is no Tenant {tenant} that allows the namespace {namespace}. Ask the platform team to select \
         the namespace in spec.allowedNamespaces of the Tenant."
    );
    if let Some(former) = former {
        text += &format!(
            " The data of this resource is kept in the tenant with the id {former}: if its Tenant was \
             deleted, a Tenant with the annotation tempmail.dev/adopt-tenant={former} has it again."
        );
    }
    Message::new(Reason::TenantRefNotPermitted, text)
}

pub(crate) fn tenant_not_ready(tenant: &str) -> Message {
    Message::new(
        Reason::TenantNotReady,
        format!(
            "The Tenant {tenant} is not ready. This resource is reconciled again when the Tenant is ready."
        ),
    )
}

pub(crate) fn tenant_suspended(tenant: &str) -> Message {
    Message::new(
        Reason::TenantSuspended,
        format!(
            "The Tenant {tenant} is suspended: its mail and requests are refused, no events are sent, and \
             nothing is created for it. Its data is kept. Ask the platform team to set spec.suspended of the \
             Tenant to false."
        ),
    )
}

/// What [`tenant_suspended`] says, on the Tenant itself.
pub(crate) fn suspended(tenant: &str) -> Message {
    Message::new(
        Reason::TenantSuspended,
        format!(
            "The mail and the requests of tenant {tenant} are refused, and its data is kept. Set \
             spec.suspended to false to resume."
        ),
    )
}

/// `former` is the tenant that the object had.
pub(crate) fn tenant_replaced(tenant: &str, former: Uuid) -> Message {
    let adopt = adopt_command(tenant, former);
    Message::new(
        Reason::TenantReplaced,
        format!(
            "The Tenant {tenant} was deleted and created again, and the new one inherits nothing: this \
             resource belongs to the former tenant, with the id {former}. If the former tenant is meant, ask \
             the platform team to run `{adopt}`. If the new one is meant, delete this object and create it \
             again."
        ),
    )
}

/// An event: the Tenant is deleted, and its tenant `id` is kept.
pub(crate) fn tenant_retained(tenant: &str, id: Uuid) -> Message {
    let adopt = adopt_command(tenant, id);
    Message::new(
        Reason::TenantRetained,
        format!(
            "The Tenant {tenant} is deleted, and its tenant, with the id {id}, is suspended and keeps its \
             data. To use it again, create a Tenant with the annotation tempmail.dev/adopt-tenant={id}. If \
             the Tenant {tenant} exists again already, run `{adopt}`."
        ),
    )
}

/// The command that has the Tenant of a name adopt the tenant `id`.
fn adopt_command(tenant: &str, id: Uuid) -> String {
    format!("kubectl annotate tenants.tempmail.dev {tenant} --overwrite tempmail.dev/adopt-tenant={id}")
}

pub(crate) fn tenant_name_taken(tenant: &str) -> Message {
    Message::new(
        Reason::TenantNameTaken,
        format!(
            "A tenant with the name {tenant} exists already. Set the annotation tempmail.dev/adopt-tenant to \
             its id, which `tempmail tenant list` shows, to adopt it; or create a Tenant with another name."
        ),
    )
}

/// `id` is the tenant that the annotation names; `None` if the annotation was removed meanwhile.
pub(crate) fn tenant_not_adoptable(id: Option<Uuid>) -> Message {
    let tenant = id.map_or_else(|| "The tenant".to_owned(), |id| format!("The tenant {id}"));
    Message::new(
        Reason::TenantNotAdoptable,
        format!(
            "{tenant} in the annotation tempmail.dev/adopt-tenant does not exist, or another Tenant manages \
             it. Correct or remove the annotation."
        ),
    )
}

pub(crate) fn adoption_invalid() -> Message {
    Message::new(
        Reason::InvalidSpec,
        "The annotation tempmail.dev/adopt-tenant is not the id of a tenant. Correct or remove it.",
    )
}

/// `why` is about a part of the selector, which it names.
pub(crate) fn selector_invalid(why: &str) -> Message {
    Message::new(
        Reason::InvalidSpec,
        format!(
            "No namespace may use the tenant, because spec.allowedNamespaces is invalid: {why}. Correct the \
             selector."
        ),
    )
}

pub(crate) fn object_unreadable() -> Message {
    Message::new(
        Reason::InvalidSpec,
        "This version of the operator can't read the object. Install the CRDs of the same version, and apply \
         the object again.",
    )
}

/// The tenant of an object has as many `resources`, such as "webhooks", as it may have.
pub(crate) fn limit_reached(tenant: &str, resources: &str, usage: LimitUsage) -> Message {
    let LimitUsage { used, limit } = usage;
    Message::new(
        Reason::QuotaExceeded,
        format!(
            "{used} of {limit} {resources} of tenant {tenant} are used. Delete one, or ask the platform team \
             to raise the limit."
        ),
    )
}

/// A tenant has more than its limits allow, which were lowered: of what, such as "webhooks", and how many.
pub(crate) fn limits_exceeded(tenant: &str, exceeded: &[(&str, LimitUsage)]) -> Message {
    let uses = exceeded.iter();
    let uses = uses.map(|(resources, LimitUsage { used, limit })| format!("{used} of {limit} {resources}"));
    let uses = uses.collect::<Vec<_>>().join(", ");
    Message::new(
        Reason::QuotaExceeded,
        format!(
            "Tenant {tenant} uses more than its limits allow: {uses}. Nothing is deleted, and no more of \
             these can be created. Delete some, or raise spec.limits."
        ),
    )
}

pub(crate) fn held_by_another_cluster(holder: &RowHolder) -> Message {
    let (object, cluster) = (name_of(holder), holder.cluster);
    let text = if holder.released {
        format!(
            "The object {object} of the released cluster {cluster} had this resource. Only an object with \
             the same tenant, kind, namespace and name adopts it: create that object."
        )
    } else {
        format!(
            "The object {object} of the cluster {cluster} over the same database has this resource. If that \
             cluster is gone, run `tempmail cluster release {cluster}`; if it is not, delete one of the two \
             objects."
        )
    };
    Message::new(Reason::HeldByAnotherCluster, text)
}

/// The name of an object, with its namespace if it is in one.
fn name_of(holder: &RowHolder) -> String {
    match &holder.namespace {
        Some(namespace) => format!("{namespace}/{}", holder.name),
        None => holder.name.clone(),
    }
}

/// An event: an object took over what existed without one. `what` names it.
pub(crate) fn adopted(what: &str) -> Message {
    Message::new(Reason::Adopted, format!("Adopted {what}, which no object managed. Its mail is kept."))
}

/// An event: an object took over the row `id` of an object in a cluster that is released.
pub(crate) fn adopted_from_cluster(kind: &str, id: Uuid, cluster: Uuid) -> Message {
    Message::new(
        Reason::Adopted,
        format!(
            "Adopted the resource {id} of the {kind} with the same name in the released cluster {cluster}. \
             Its mail is kept; credentials are made new."
        ),
    )
}

pub(crate) fn postgres_unavailable() -> Message {
    Message::new(
        Reason::PostgresUnavailable,
        "The database is unavailable, so this object was not reconciled yet. It is retried until the \
         database is available.",
    )
}

pub(crate) fn paused() -> Message {
    Message::new(
        Reason::Paused,
        "The annotation tempmail.dev/paused pauses the reconciliation. Remove it to resume.",
    )
}
