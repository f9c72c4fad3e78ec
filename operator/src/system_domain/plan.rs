//! What is to be done for a system domain, and how it stands: decided without I/O.

use tempmail_crds::{SystemDomain, SystemDomainStatus};
use tempmail_store::{DeclareError, ManagedSystemDomain};

use crate::standing::{Outlook, Reason, Standing};

/// All that decides about an object.
#[derive(Debug, Clone)]
pub(super) struct World {
    /// The domain as it is declared; `None` where it is no host name.
    pub name: Option<String>,
    /// The object's row; it serves.
    pub domain: Option<ManagedSystemDomain>,
    pub claim: Claim,
}

/// Whether the object's domain is to be the default one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    /// The object does not say so.
    None,
    /// It says so, and is the oldest that does.
    Won,
    /// It says so, and an older one does, too.
    Lost,
}

/// What comes next.
#[derive(Debug)]
pub(super) enum Next<'a> {
    Step(Step<'a>),
    Done(Standing<SystemDomainStatus>),
}

/// What may be done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// There is no domain yet, or it is not what the object says.
    Declare { name: &'a str, default: bool },
}

/// Decides what comes next.
pub(super) fn plan<'a>(object: &SystemDomain, world: &'a World) -> Next<'a> {
    let Some(name) = &world.name else {
        let standing = Standing::refused(SystemDomainStatus::default(), Reason::InvalidSpec, Outlook::Stuck);
        return Next::Done(standing.explained("spec.domain is not a host name."));
    };
    let default = world.claim == Claim::Won;
    let is_right = |domain: &&ManagedSystemDomain| {
        domain.shared_inboxes == object.spec.shared_inboxes
            && domain.sort_order == object.spec.sort_order
            && (domain.is_default || !default)
    };
    let Some(domain) = world.domain.as_ref().filter(is_right) else {
        return Next::Step(Step::Declare { name, default });
    };
    let status =
        SystemDomainStatus { domain_id: Some(domain.id.to_string()), ..SystemDomainStatus::default() };
    if world.claim == Claim::Lost {
        return Next::Done(Standing::not_ready(status, Reason::DefaultTaken, Outlook::Stuck).soon());
    }
    Next::Done(Standing::ready(status))
}

/// How an object stands whose domain could not be declared.
pub(super) fn refused(refused: DeclareError) -> Standing<SystemDomainStatus> {
    let refused_for = |reason| Standing::refused(SystemDomainStatus::default(), reason, Outlook::Stuck);
    match refused {
        DeclareError::ManagedByAnother => refused_for(Reason::DomainClaimed),
        _ => refused_for(Reason::ReservedDomain).explained(
            "The domain is equal to, above or below a custom domain of a tenant: use another one.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use tempmail_crds::SystemDomainSpec;
    use uuid::Uuid;

    use super::*;

    /// Every row that a domain may have, and none.
    fn rows() -> Vec<Option<ManagedSystemDomain>> {
        let flags = [false, true];
        let all = flags.iter().flat_map(|is_default| {
            flags.iter().flat_map(move |shared_inboxes| {
                [0, 7].map(|sort_order| {
                    Some(ManagedSystemDomain {
                        id: Uuid::nil(),
                        is_default: *is_default,
                        sort_order,
                        shared_inboxes: *shared_inboxes,
                    })
                })
            })
        });
        all.chain([None]).collect()
    }

    fn object(default: bool) -> SystemDomain {
        let spec = SystemDomainSpec {
            domain: "mail.example".to_owned(),
            default,
            sort_order: 7,
            shared_inboxes: false,
        };
        SystemDomain::new("ours", spec)
    }

    #[test]
    fn from_any_row_one_step_makes_what_the_object_says() {
        for domain in rows() {
            for claim in [Claim::None, Claim::Won, Claim::Lost] {
                let object = object(claim != Claim::None);
                let mut world = World { name: Some("mail.example".to_owned()), domain, claim };
                // Once, and again after a crash.
                for _ in 0..2 {
                    let Next::Step(Step::Declare { default, .. }) = plan(&object, &world) else { break };
                    assert_eq!(default, claim == Claim::Won);
                    let was_default = world.domain.is_some_and(|domain| domain.is_default);
                    world.domain = Some(ManagedSystemDomain {
                        id: Uuid::nil(),
                        is_default: was_default || default,
                        sort_order: 7,
                        shared_inboxes: false,
                    });
                }
                let Next::Done(standing) = plan(&object, &world) else { panic!("{world:?}") };
                let expected = if claim == Claim::Lost { Reason::DefaultTaken } else { Reason::Ready };
                assert_eq!(standing.verdicts[0].reason, expected);
                let domain = world.domain.expect("it is there");
                assert!(domain.sort_order == 7 && !domain.shared_inboxes);
                assert!(domain.is_default || claim != Claim::Won);
            }
        }
    }

    #[test]
    fn what_is_no_host_name_is_refused() {
        let world = World { name: None, domain: None, claim: Claim::None };
        let object = object(false);
        let Next::Done(standing) = plan(&object, &world) else { panic!("nothing is to be done") };
        assert_eq!(standing.verdicts[0].reason, Reason::InvalidSpec);
    }
}
