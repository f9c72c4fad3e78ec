//! The plan of a SystemDomain.

use tempmail_crds::{SystemDomain, SystemDomainStatus};
use tempmail_store::ManagedSystemDomain;

use crate::reconcile::driver::Plan;
use crate::reconcile::refusal::Refusal;
use crate::status::{Message, Progress, StatusUpdate, message};

/// What the plan of a SystemDomain depends on.
#[derive(Debug, Clone)]
pub(crate) struct ObservedSystemDomain {
    /// The declared domain; `None` if it is not a host name.
    pub name: Option<String>,
    /// The object's row, if it serves.
    pub domain: Option<ManagedSystemDomain>,
    pub claim: DefaultClaim,
}

/// Whether the object's domain is to be the default one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DefaultClaim {
    /// The object does not claim it.
    None,
    /// The object is the oldest one that claims it.
    Won,
    /// An older object claims it, which has this name.
    Lost(String),
}

/// A step for a SystemDomain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SystemDomainStep {
    /// Create or update the domain.
    Declare { name: String, default: bool },
}

/// Decides on the next step.
pub(super) fn plan(
    object: &SystemDomain,
    observed: &ObservedSystemDomain,
) -> Plan<SystemDomainStep, SystemDomainStatus> {
    let Some(name) = &observed.name else {
        return Plan::Done(not_accepted(message::domain_invalid(&object.spec.domain)));
    };
    let default = observed.claim == DefaultClaim::Won;
    let is_as_declared = |domain: &&ManagedSystemDomain| {
        domain.shared_inboxes == object.spec.shared_inboxes
            && domain.sort_order == object.spec.sort_order
            && (domain.is_default || !default)
    };
    let Some(domain) = observed.domain.as_ref().filter(is_as_declared) else {
        return Plan::Step(SystemDomainStep::Declare { name: name.clone(), default });
    };
    let status =
        SystemDomainStatus { domain_id: Some(domain.id.to_string()), ..SystemDomainStatus::default() };
    Plan::Done(match &observed.claim {
        DefaultClaim::Lost(older) => {
            StatusUpdate::not_ready(status, message::default_taken(older), Progress::Stalled).retry_soon()
        }
        DefaultClaim::None | DefaultClaim::Won => StatusUpdate::ready(status),
    })
}

/// The status of an object whose domain can't be declared.
pub(super) fn refused(object: &SystemDomain, refusal: &Refusal) -> StatusUpdate<SystemDomainStatus> {
    let domain = &object.spec.domain;
    not_accepted(match refusal {
        Refusal::HeldByAnotherCluster(holder) => message::held_by_another_cluster(holder),
        Refusal::Claimed(holder) => message::domain_claimed(domain, holder.as_ref()),
        // A system domain has neither a limit nor a Secret.
        Refusal::Row(_) | Refusal::LimitReached(_) | Refusal::Secret(_) => {
            message::domain_of_a_tenant(domain)
        }
    })
}

fn not_accepted(message: Message) -> StatusUpdate<SystemDomainStatus> {
    StatusUpdate::not_accepted(SystemDomainStatus::default(), message, Progress::Stalled)
}

#[cfg(test)]
mod tests {
    use tempmail_crds::SystemDomainSpec;
    use uuid::Uuid;

    use super::*;
    use crate::status::Reason;

    /// No row, and each row that the store may have.
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
    fn declares_any_row_as_the_object_does_in_one_step() {
        for domain in rows() {
            for claim in [DefaultClaim::None, DefaultClaim::Won, DefaultClaim::Lost("older".to_owned())] {
                let object = object(claim != DefaultClaim::None);
                let name = Some("mail.example".to_owned());
                let mut observed = ObservedSystemDomain { name, domain, claim: claim.clone() };
                // The step, and its repetition after a crash.
                for _ in 0..2 {
                    let Plan::Step(SystemDomainStep::Declare { default, .. }) = plan(&object, &observed)
                    else {
                        break;
                    };
                    assert_eq!(default, claim == DefaultClaim::Won);
                    let was_default = observed.domain.is_some_and(|domain| domain.is_default);
                    observed.domain = Some(ManagedSystemDomain {
                        id: Uuid::nil(),
                        is_default: was_default || default,
                        sort_order: 7,
                        shared_inboxes: false,
                    });
                }
                let Plan::Done(update) = plan(&object, &observed) else { panic!("{observed:?}") };
                let is_lost = matches!(claim, DefaultClaim::Lost(_));
                let expected = if is_lost { Reason::DefaultTaken } else { Reason::Ready };
                assert_eq!(update.conditions[0].reason, expected);
                let domain = observed.domain.expect("the domain is declared");
                assert!(domain.sort_order == 7 && !domain.shared_inboxes);
                assert!(domain.is_default || claim != DefaultClaim::Won);
            }
        }
    }

    #[test]
    fn rejects_a_domain_that_is_not_a_host_name() {
        let observed = ObservedSystemDomain { name: None, domain: None, claim: DefaultClaim::None };
        let Plan::Done(update) = plan(&object(false), &observed) else { panic!("a step is planned") };
        assert_eq!(update.conditions[0].reason, Reason::InvalidSpec);
    }
}
