//! The plan of a Mailbox.

use tempmail_crds::{Mailbox, MailboxStatus};
use tempmail_model::address::MailboxAddress;
use tempmail_store::{DeclareError, ManagedMailbox, Resource};
use uuid::Uuid;

use crate::kind::Kind as _;
use crate::reconcile::driver::Plan;
use crate::reconcile::grant::Grant;
use crate::reconcile::refusal::Refusal;
use crate::reconcile::secret::{self, FoundSecret};
use crate::status::{Message, Progress, StatusUpdate, message};

/// What the plan of a Mailbox depends on.
#[derive(Debug, Clone)]
pub(crate) struct ObservedMailbox {
    pub grant: Grant,
    /// The declared address; `None` if no mailbox can have it.
    pub address: Option<MailboxAddress>,
    /// Whether the domain serves the tenant.
    pub is_served: bool,
    /// Whether the domain reserves the local part.
    pub is_reserved: bool,
    /// The object's row.
    pub mailbox: Option<ManagedMailbox>,
    pub predecessor: Option<Resource>,
    pub secret: FoundSecret,
    /// Whether the Secret holds the address and the password of the row.
    pub secret_is_current: bool,
    /// Whether this reconciliation issued the row's password, and so can write and activate it.
    pub is_issued: bool,
    /// Whether the annotation requests a new password and was not handled.
    pub rotate_requested: bool,
    /// The annotation's value that was handled last.
    pub rotate_handled: Option<String>,
}

/// A step for a Mailbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MailboxStep {
    /// Refuse sign-in, since the object is no longer accepted.
    Deactivate,
    /// Release the row of the predecessor.
    ReleasePredecessor,
    /// Create or adopt the mailbox if there is none, and give it a new password; sign-in is refused.
    Declare { tenant: Uuid, address: MailboxAddress },
    /// Write the password that was just declared to the Secret.
    WriteSecret,
    /// Permit sign-in with the password of this hash, which the Secret holds.
    Activate { password_hash: String },
}

/// Decides on the next step.
pub(super) fn plan(object: &Mailbox, observed: &ObservedMailbox) -> Plan<MailboxStep, MailboxStatus> {
    let not_accepted =
        |why, progress| Plan::Done(StatusUpdate::not_accepted(status(object, observed), why, progress));
    let stalled = |message| not_accepted(message, Progress::Stalled);
    let tenant = match observed.grant.tenant(object) {
        Ok(tenant) => tenant,
        Err(_) if observed.mailbox.as_ref().is_some_and(|mailbox| mailbox.active) => {
            return Plan::Step(MailboxStep::Deactivate);
        }
        Err((message, progress)) => return not_accepted(message, progress),
    };
    let Some(address) = &observed.address else { return stalled(message::address_invalid()) };
    if observed.secret == FoundSecret::Foreign {
        return stalled(message::secret_conflict(&secret_name(object)));
    }
    if let FoundSecret::Unreadable(error) = &observed.secret {
        return Plan::Done(refused(object, observed, &Refusal::Secret(error.clone())));
    }
    let declare = || Plan::Step(MailboxStep::Declare { tenant, address: address.clone() });
    match &observed.mailbox {
        None if observed.is_reserved => stalled(message::local_part_reserved(address.domain())),
        None if !observed.is_served => not_accepted(domain_not_served(object), Progress::Reconciling),
        None if observed.predecessor.is_some() => Plan::Step(MailboxStep::ReleasePredecessor),
        None => declare(),
        Some(_) if observed.rotate_requested => declare(),
        Some(mailbox) => plan_mailbox(object, observed, mailbox).unwrap_or_else(declare),
    }
}

/// Decides on the next step for a mailbox whose password is not to be rotated; `None` if it needs another
/// password all the same.
fn plan_mailbox(
    object: &Mailbox,
    observed: &ObservedMailbox,
    mailbox: &ManagedMailbox,
) -> Option<Plan<MailboxStep, MailboxStatus>> {
    let status = status(object, observed);
    match (mailbox.active, observed.secret_is_current) {
        (true, true) if observed.is_served => Some(Plan::Done(StatusUpdate::ready(status))),
        (true, true) => {
            let update = StatusUpdate::not_ready(status, domain_not_served(object), Progress::Reconciling);
            Some(Plan::Done(update.retry_soon()))
        }
        (true, false) => None,
        // An inactive mailbox may have been deactivated, so a password of an earlier reconciliation is not
        // activated, even if the Secret still holds it.
        (false, _) if !observed.is_issued => None,
        (false, false) => Some(Plan::Step(MailboxStep::WriteSecret)),
        (false, true) => {
            Some(Plan::Step(MailboxStep::Activate { password_hash: mailbox.password_hash.clone() }))
        }
    }
}

fn domain_not_served(object: &Mailbox) -> Message {
    let domain = object.domain_name().unwrap_or_default();
    message::domain_not_served(domain, &object.spec.tenant_ref.name)
}

/// The status of an object whose step was refused.
pub(super) fn refused(
    object: &Mailbox,
    observed: &ObservedMailbox,
    refusal: &Refusal,
) -> StatusUpdate<MailboxStatus> {
    let tenant = &object.spec.tenant_ref.name;
    let stalled = |message| (message, Progress::Stalled);
    let (message, progress) = match refusal {
        Refusal::HeldByAnotherCluster(holder) => stalled(message::held_by_another_cluster(holder)),
        Refusal::LimitReached(usage) => stalled(message::limit_reached(tenant, Mailbox::PLURAL, *usage)),
        Refusal::Row(DeclareError::NotAdopted) => {
            stalled(message::exists_unmanaged(tenant, "the mailbox at spec.address"))
        }
        Refusal::Row(DeclareError::TenantDisabled) => stalled(message::tenant_suspended(tenant)),
        Refusal::Row(DeclareError::NoSuchDomain) => (domain_not_served(object), Progress::Reconciling),
        Refusal::Row(_) | Refusal::Claimed(_) => stalled(message::address_taken()),
        Refusal::Secret(error) => return error.status_update(status(object, observed), &secret_name(object)),
    };
    let status =
        MailboxStatus { last_handled_rotate_at: observed.rotate_handled.clone(), ..MailboxStatus::default() };
    StatusUpdate::not_accepted(status, message, progress)
}

/// The status without its conditions.
fn status(object: &Mailbox, observed: &ObservedMailbox) -> MailboxStatus {
    MailboxStatus {
        mailbox_id: observed.mailbox.as_ref().map(|mailbox| mailbox.id.to_string()),
        secret_name: observed.secret_is_current.then(|| secret_name(object)),
        last_handled_rotate_at: observed.rotate_handled.clone(),
        ..MailboxStatus::default()
    }
}

/// The name of the Secret that the password is written to.
pub(super) fn secret_name(object: &Mailbox) -> String {
    secret::name_of(object, object.spec.secret.as_ref(), "mailbox")
}

#[cfg(test)]
mod tests;
