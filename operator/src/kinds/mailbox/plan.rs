//! The plan of a Mailbox.

use tempmail_crds::MailboxStatus;
use tempmail_model::address::MailboxAddress;
use tempmail_store::{DeclareError, ManagedMailbox, Resource};
use uuid::Uuid;

use crate::reconcile::driver::Plan;
use crate::reconcile::grant::Grant;
use crate::reconcile::refusal::Refusal;
use crate::reconcile::secret::FoundSecret;
use crate::status::{Progress, Reason, StatusUpdate};

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
pub(super) fn plan(secret_name: &str, observed: &ObservedMailbox) -> Plan<MailboxStep, MailboxStatus> {
    let not_accepted =
        |reason, progress| StatusUpdate::not_accepted(status(secret_name, observed), reason, progress);
    let tenant = match observed.grant.tenant() {
        Ok(tenant) => tenant,
        Err(_) if observed.mailbox.as_ref().is_some_and(|mailbox| mailbox.active) => {
            return Plan::Step(MailboxStep::Deactivate);
        }
        Err((reason, progress)) => return Plan::Done(not_accepted(reason, progress)),
    };
    let invalid = |message: &'static str| {
        Plan::Done(not_accepted(Reason::InvalidSpec, Progress::Stalled).with_message(message))
    };
    let Some(address) = &observed.address else {
        return invalid(
            "spec.address is not a valid address: its local part contains '..'. Create this object again with \
             another address.",
        );
    };
    if observed.secret == FoundSecret::Foreign {
        return Plan::Done(not_accepted(Reason::SecretConflict, Progress::Stalled));
    }
    let declare = || Plan::Step(MailboxStep::Declare { tenant, address: address.clone() });
    match &observed.mailbox {
        None if observed.is_reserved => invalid(
            "The local part of spec.address is reserved on system domains. Create this object again with another \
             address.",
        ),
        None if !observed.is_served => {
            Plan::Done(not_accepted(Reason::DomainNotServed, Progress::Reconciling))
        }
        None if observed.predecessor.is_some() => Plan::Step(MailboxStep::ReleasePredecessor),
        None => declare(),
        Some(mailbox) if mailbox.tenant != Some(tenant) => {
            Plan::Done(not_accepted(Reason::TenantReplaced, Progress::Stalled))
        }
        Some(_) if observed.rotate_requested => declare(),
        Some(mailbox) => plan_mailbox(secret_name, observed, mailbox).unwrap_or_else(declare),
    }
}

/// Decides on the next step for a mailbox whose password is not to be rotated; `None` if it needs another
/// password all the same.
fn plan_mailbox(
    secret_name: &str,
    observed: &ObservedMailbox,
    mailbox: &ManagedMailbox,
) -> Option<Plan<MailboxStep, MailboxStatus>> {
    let status = status(secret_name, observed);
    match (mailbox.active, observed.secret_is_current) {
        (true, true) if observed.is_served => Some(Plan::Done(StatusUpdate::ready(status))),
        (true, true) => {
            let update = StatusUpdate::not_ready(status, Reason::DomainNotServed, Progress::Reconciling);
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

/// The status of an object whose step was refused.
pub(super) fn refused(
    secret_name: &str,
    observed: &ObservedMailbox,
    refusal: Refusal,
) -> StatusUpdate<MailboxStatus> {
    let (reason, progress) = match refusal {
        Refusal::Row(DeclareError::NotAdopted) => (Reason::ExistsUnmanaged, Progress::Stalled),
        Refusal::Row(DeclareError::TenantChanged) => (Reason::TenantReplaced, Progress::Stalled),
        Refusal::Row(DeclareError::TenantDisabled) => (Reason::TenantSuspended, Progress::Stalled),
        Refusal::Row(DeclareError::LimitReached) => (Reason::QuotaExceeded, Progress::Stalled),
        Refusal::Row(DeclareError::NoSuchDomain) => (Reason::DomainNotServed, Progress::Reconciling),
        Refusal::Row(_) => (Reason::AddressTaken, Progress::Stalled),
        Refusal::Secret(error) => return error.status_update(status(secret_name, observed)),
    };
    let status =
        MailboxStatus { last_handled_rotate_at: observed.rotate_handled.clone(), ..MailboxStatus::default() };
    StatusUpdate::not_accepted(status, reason, progress)
}

/// The status without its conditions.
fn status(secret_name: &str, observed: &ObservedMailbox) -> MailboxStatus {
    MailboxStatus {
        mailbox_id: observed.mailbox.as_ref().map(|mailbox| mailbox.id.to_string()),
        secret_name: observed.secret_is_current.then(|| secret_name.to_owned()),
        last_handled_rotate_at: observed.rotate_handled.clone(),
        ..MailboxStatus::default()
    }
}

#[cfg(test)]
mod tests;
