//! From every observed state, with restarts between any two steps, the plan ends with a status that fits.

use tempmail_crds::{AdoptionPolicy, DeletionPolicy, MailboxSpec, TenantRef};

use super::*;
use crate::reconcile::driver::STEP_LIMIT;
use crate::reconcile::secret::example::is_writable;
use crate::reconcile::vanished::example_predecessor;
use crate::status::Reason;

const TENANT: Uuid = Uuid::from_u128(1);
const FORMER: Uuid = Uuid::from_u128(2);

fn mailbox(tenant: Uuid, active: bool) -> ManagedMailbox {
    ManagedMailbox { id: Uuid::nil(), tenant: Some(tenant), active, password_hash: String::new() }
}

/// Every state that a process may find when it starts.
fn states() -> Vec<ObservedMailbox> {
    let mut states = Vec::new();
    let not_granted = Grant::NotGranted { progress: Progress::Stalled, former: Some(TENANT) };
    let grants = [
        (Grant::Granted(TENANT), TENANT),
        (Grant::TenantNotReady, TENANT),
        (Grant::Replaced(FORMER), FORMER),
        (not_granted, TENANT),
    ];
    let secrets = secret::example::all_found();
    for (grant, tenant) in grants {
        for mailbox in [None, Some(mailbox(tenant, false)), Some(mailbox(tenant, true))] {
            for secret in &secrets {
                for flags in 0..64 {
                    let flag = |at: u8| flags & 1 << at != 0;
                    let is_owned = matches!(secret, FoundSecret::Owned(_));
                    states.push(ObservedMailbox {
                        grant,
                        address: flag(1).then(|| MailboxAddress::parse("a@mail.example").unwrap()),
                        is_served: flag(2),
                        is_reserved: flag(3),
                        mailbox: mailbox.clone(),
                        predecessor: flag(5).then(example_predecessor),
                        secret: secret.clone(),
                        secret_is_current: flag(0) && mailbox.is_some() && is_owned,
                        is_issued: false,
                        rotate_requested: flag(4),
                        rotate_handled: None,
                    });
                }
            }
        }
    }
    states
}

fn next(observed: &ObservedMailbox) -> Plan<MailboxStep, MailboxStatus> {
    let spec = MailboxSpec {
        tenant_ref: TenantRef { name: "acme".to_owned() },
        address: "a@mail.example".to_owned(),
        secret: None,
        adoption_policy: AdoptionPolicy::Never,
        deletion_policy: DeletionPolicy::Delete,
    };
    plan(&Mailbox::new("a", spec), observed)
}

fn carry_out(step: &MailboxStep, observed: &mut ObservedMailbox) {
    match step {
        MailboxStep::Deactivate => observed.mailbox.as_mut().unwrap().active = false,
        MailboxStep::ReleasePredecessor => observed.predecessor = None,
        MailboxStep::Declare { tenant, .. } => {
            observed.mailbox = Some(mailbox(*tenant, false));
            observed.secret_is_current = false;
            observed.is_issued = true;
            observed.rotate_requested = false;
        }
        MailboxStep::WriteSecret => {
            observed.secret = FoundSecret::Owned(Box::default());
            observed.secret_is_current = true;
        }
        MailboxStep::Activate { .. } => observed.mailbox.as_mut().unwrap().active = true,
    }
}

/// Plans and carries out as the driver does, with a restart after the step `restart_after`, if any.
fn converge(
    mut observed: ObservedMailbox,
    restart_after: Option<usize>,
) -> (ObservedMailbox, StatusUpdate<MailboxStatus>) {
    for nth in 0..STEP_LIMIT {
        let step = match next(&observed) {
            Plan::Done(update) => return (observed, update),
            Plan::Step(step) => step,
        };
        assert_is_safe(&step, &observed);
        carry_out(&step, &mut observed);
        if restart_after == Some(nth) {
            observed.is_issued = false;
        }
    }
    panic!("the plan does not end: {observed:?}");
}

/// What must hold before a step.
fn assert_is_safe(step: &MailboxStep, observed: &ObservedMailbox) {
    match step {
        MailboxStep::Declare { .. } => {
            assert!(is_writable(&observed.secret));
            assert!(observed.mailbox.is_some() || observed.predecessor.is_none());
        }
        MailboxStep::WriteSecret => assert!(observed.is_issued && is_writable(&observed.secret)),
        MailboxStep::Activate { .. } => assert!(observed.is_issued && observed.secret_is_current),
        MailboxStep::Deactivate | MailboxStep::ReleasePredecessor => {}
    }
}

fn assert_fits(observed: &ObservedMailbox, update: &StatusUpdate<MailboxStatus>) {
    let is_active = observed.mailbox.as_ref().is_some_and(|mailbox| mailbox.active);
    if update.conditions[0].reason == Reason::Ready {
        assert!(is_active && observed.secret_is_current && observed.is_served && !observed.rotate_requested);
        assert_eq!(observed.mailbox.as_ref().and_then(|mailbox| mailbox.tenant), Some(TENANT));
    }
    if observed.grant != Grant::Granted(TENANT) {
        assert!(!is_active, "sign-in is permitted without a grant");
    }
}

#[test]
fn converges_from_every_state() {
    for state in states() {
        let (observed, update) = converge(state, None);
        assert_fits(&observed, &update);
    }
}

#[test]
fn converges_to_the_same_status_after_a_restart_between_any_steps() {
    for state in states() {
        let (_, expected) = converge(state.clone(), None);
        for restart_after in 0..5 {
            let (observed, update) = converge(state.clone(), Some(restart_after));
            assert_fits(&observed, &update);
            assert_eq!(update, expected);
        }
    }
}

#[test]
fn replaces_the_password_of_a_deactivated_mailbox_that_its_secret_still_holds() {
    let is_deactivated = |state: &ObservedMailbox| {
        let is_inactive = state.mailbox.as_ref().is_some_and(|mailbox| !mailbox.active);
        let is_valid = state.address.is_some() && state.grant == Grant::Granted(TENANT);
        is_inactive && is_valid && state.secret_is_current
    };
    let deactivated: Vec<_> = states().into_iter().filter(is_deactivated).collect();
    assert!(!deactivated.is_empty());
    for state in deactivated {
        let step = next(&state);
        assert!(matches!(step, Plan::Step(MailboxStep::Declare { .. })), "{state:?}: {step:?}");
    }
}
