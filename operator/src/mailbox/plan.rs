//! What is to be done for a mailbox, and how it stands: decided without I/O.

use tempmail_crds::MailboxStatus;
use tempmail_model::address::MailboxAddress;
use tempmail_store::{DeclareError, ManagedMailbox};
use uuid::Uuid;

use crate::secret::Found;
use crate::standing::{Outlook, Reason, Standing};
use crate::tenancy::Tenancy;

/// All that decides about an object.
#[derive(Clone)]
pub(super) struct World {
    pub tenancy: Tenancy,
    /// The address as it is declared; `None` where no mailbox can have it.
    pub address: Option<MailboxAddress>,
    /// Whether its domain serves the tenant.
    pub serves: bool,
    /// Whether its domain keeps its local part from new mailboxes.
    pub is_reserved: bool,
    /// The object's row.
    pub mailbox: Option<ManagedMailbox>,
    /// What there is under the Secret's name.
    pub secret: Found,
    /// Whether the Secret has what signs in to the mailbox.
    pub is_told: bool,
    /// Whether the object asks for a new password, and has none since.
    pub asks: bool,
    /// What asked for one, the last time that there was one.
    pub handled: Option<String>,
}

/// What comes next.
pub(super) enum Next<'a> {
    Step(Step<'a>),
    Done(Standing<MailboxStatus>),
}

/// What may be done.
pub(super) enum Step<'a> {
    /// The object is not accepted any more: nobody is to sign in to the mailbox.
    Withhold,
    /// There is no mailbox yet, or no Secret with its password, or another one is asked for.
    NewPassword {
        tenant: Uuid,
        address: &'a MailboxAddress,
        secret: &'a Found,
        /// Whether somebody may sign in with the one that it takes the place of.
        works: bool,
    },
}

/// Decides what comes next.
pub(super) fn plan<'a>(secret_name: &str, world: &'a World) -> Next<'a> {
    let refuse = |reason, outlook| Standing::refused(status(secret_name, world), reason, outlook);
    let tenant = match world.tenancy.permitted() {
        Ok(tenant) => tenant,
        Err(_) if world.mailbox.as_ref().is_some_and(|mailbox| mailbox.active) => {
            return Next::Step(Step::Withhold);
        }
        Err((reason, outlook)) => {
            return Next::Done(refuse(reason, outlook));
        }
    };
    let invalid = |why: &'static str| Next::Done(refuse(Reason::InvalidSpec, Outlook::Stuck).explained(why));
    let Some(address) = &world.address else {
        return invalid(
            "spec.address is not an address that a mailbox can have: its local part has no '..'.",
        );
    };
    if world.secret == Found::Foreign {
        return Next::Done(refuse(Reason::SecretConflict, Outlook::Stuck));
    }
    match &world.mailbox {
        Some(mailbox) if mailbox.tenant != Some(tenant) => {
            Next::Done(refuse(Reason::TenantReplaced, Outlook::Stuck))
        }
        Some(mailbox) if mailbox.active && world.is_told && !world.asks => Next::Done(if world.serves {
            Standing::ready(status(secret_name, world))
        } else {
            let status = status(secret_name, world);
            Standing::not_ready(status, Reason::DomainNotServed, Outlook::Waits).soon()
        }),
        None if world.is_reserved => {
            invalid("The local part of spec.address is reserved on system domains: choose another one.")
        }
        None if !world.serves => Next::Done(refuse(Reason::DomainNotServed, Outlook::Waits)),
        mailbox => {
            let works = mailbox.as_ref().is_some_and(|mailbox| mailbox.active);
            Next::Step(Step::NewPassword { tenant, address, secret: &world.secret, works })
        }
    }
}

/// How an object stands whose mailbox could not be declared.
pub(super) fn refused(world: &World, refused: DeclareError) -> Standing<MailboxStatus> {
    let (reason, outlook) = match refused {
        DeclareError::NotAdopted => (Reason::ExistsUnmanaged, Outlook::Stuck),
        DeclareError::TenantChanged => (Reason::TenantReplaced, Outlook::Stuck),
        DeclareError::TenantDisabled => (Reason::TenantSuspended, Outlook::Stuck),
        DeclareError::LimitReached => (Reason::QuotaExceeded, Outlook::Stuck),
        DeclareError::NoSuchDomain => (Reason::DomainNotServed, Outlook::Waits),
        _ => (Reason::AddressTaken, Outlook::Stuck),
    };
    let status = MailboxStatus { last_handled_rotate_at: world.handled.clone(), ..MailboxStatus::default() };
    Standing::refused(status, reason, outlook)
}

/// The status, its conditions aside.
pub(super) fn status(secret_name: &str, world: &World) -> MailboxStatus {
    MailboxStatus {
        mailbox_id: world.mailbox.as_ref().map(|mailbox| mailbox.id.to_string()),
        secret_name: world.is_told.then(|| secret_name.to_owned()),
        last_handled_rotate_at: world.handled.clone(),
        ..MailboxStatus::default()
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    const TENANT: Uuid = Uuid::from_u128(1);
    const ANOTHER: Uuid = Uuid::from_u128(2);

    fn mailbox(tenant: Uuid, active: bool) -> ManagedMailbox {
        ManagedMailbox { id: Uuid::nil(), tenant: Some(tenant), active, password_hash: String::new() }
    }

    /// Every world that there may be.
    fn worlds() -> Vec<World> {
        let mut worlds = Vec::new();
        let tenancies =
            [Tenancy::Permitted(TENANT), Tenancy::NotReady, Tenancy::NotPermitted(Outlook::Stuck)];
        let mailboxes =
            [None, Some(mailbox(TENANT, false)), Some(mailbox(TENANT, true)), Some(mailbox(ANOTHER, true))];
        let secrets = [Found::Absent, Found::Foreign, Found::Own(Box::default())];
        for tenancy in tenancies {
            for mailbox in &mailboxes {
                for secret in &secrets {
                    for flags in 0..32 {
                        let flag = |at: u8| flags & 1 << at != 0;
                        let is_told = flag(0) && mailbox.is_some() && matches!(secret, Found::Own(_));
                        worlds.push(World {
                            tenancy,
                            address: flag(1).then(|| MailboxAddress::parse("a@mail.example").unwrap()),
                            serves: flag(2),
                            is_reserved: flag(3),
                            mailbox: mailbox.clone(),
                            secret: secret.clone(),
                            is_told,
                            asks: flag(4),
                            handled: None,
                        });
                    }
                }
            }
        }
        worlds
    }

    /// The world after the first writes of a step; all of them if there are no more.
    fn after(world: &World, step: &Step<'_>, writes: usize) -> World {
        let mut world = world.clone();
        match step {
            Step::Withhold => {
                if let (Some(mailbox), 1..) = (&mut world.mailbox, writes) {
                    mailbox.active = false;
                }
            }
            Step::NewPassword { tenant, .. } => {
                if writes >= 1 {
                    world.mailbox = Some(mailbox(*tenant, false));
                    world.is_told = false;
                    world.asks = false;
                }
                if writes >= 2 {
                    world.secret = Found::Own(Box::default());
                    world.is_told = true;
                }
                if writes >= 3 {
                    world.mailbox = Some(mailbox(*tenant, true));
                }
            }
        }
        world
    }

    /// Follows the steps to the end.
    fn end(mut world: World) -> (World, Standing<MailboxStatus>) {
        for _ in 0..4 {
            world = match plan("a-mailbox", &world) {
                Next::Done(standing) => return (world, standing),
                Next::Step(step) => after(&world, &step, usize::MAX),
            };
        }
        panic!("nothing settles");
    }

    fn is_settled(world: &World, standing: &Standing<MailboxStatus>) {
        let is_active = world.mailbox.as_ref().is_some_and(|mailbox| mailbox.active);
        if standing.verdicts[0].reason == Reason::Ready {
            assert!(is_active && world.is_told && world.serves && !world.asks);
            assert_eq!(world.mailbox.as_ref().and_then(|mailbox| mailbox.tenant), Some(TENANT));
        }
        if world.tenancy.permitted().is_err() {
            assert!(!is_active, "nobody signs in to what its tenant does not allow");
        }
    }

    #[test]
    fn from_any_world_the_steps_come_to_an_end() {
        for world in worlds() {
            let (world, standing) = end(world);
            is_settled(&world, &standing);
        }
    }

    #[test]
    fn a_step_that_ended_after_any_of_its_writes_is_made_good() {
        for world in worlds() {
            let Next::Step(step) = plan("a-mailbox", &world) else { continue };
            let (_, expected) = end(world.clone());
            for writes in 0..3 {
                let crashed = after(&world, &step, writes);
                let unknown =
                    crashed.mailbox.as_ref().is_some_and(|mailbox| mailbox.active && !crashed.is_told);
                assert!(writes == 0 || !unknown || matches!(step, Step::Withhold), "its password is lost");
                let (world, standing) = end(crashed);
                is_settled(&world, &standing);
                assert_eq!(standing, expected);
            }
        }
    }

    #[test]
    fn what_somebody_else_made_is_left_alone() {
        for world in worlds().into_iter().filter(|world| world.secret == Found::Foreign) {
            assert!(!matches!(plan("a-mailbox", &world), Next::Step(Step::NewPassword { .. })));
        }
    }
}
