//! Domains of the installation itself.

mod plan;

use jiff::Timestamp;
use kube::api::ListParams;
use kube::core::DeserializeGuard;
use kube::{Api, ResourceExt as _};
use tempmail_crds::{SystemDomain, SystemDomainStatus};
use tempmail_model::address::normalize_domain;
use tempmail_store::{DeclareError, SystemDomainDeclaration, SystemDomainRemoval};

use self::plan::{Claim, Next, Step, World, plan};
use crate::context::Context;
use crate::controller::uid;
use crate::failure::Failure;
use crate::identity::noted;
use crate::kind::{Kind, kind};
use crate::standing::{ConditionType, Outlook, Reason, Standing, Truth};

/// Looks and steps in one reconciliation at most.
const STEPS: usize = 4;

impl Kind for SystemDomain {
    kind!(SystemDomain, SystemDomainStatus, cluster);

    fn is_retained(&self) -> bool {
        false
    }

    fn tenant_name(&self) -> Option<&str> {
        None
    }

    async fn make_true(&self, context: &Context) -> Result<Standing<SystemDomainStatus>, Failure> {
        for _ in 0..STEPS {
            let world = observe(self, context).await?;
            match plan(self, &world) {
                Next::Done(standing) => return Ok(standing),
                Next::Step(step) => {
                    if let Err(refused) = act(self, step, context).await? {
                        return Ok(plan::refused(refused));
                    }
                }
            }
        }
        Err(Failure::Unsettled)
    }

    async fn let_go(&self, context: &Context) -> Result<Option<Standing<SystemDomainStatus>>, Failure> {
        let now = context.clock.now();
        let removal = context.store.release_system_domain(context.epoch, uid(self), now).await?;
        let (reason, mailboxes) = match removal {
            SystemDomainRemoval::Removed | SystemDomainRemoval::NotFound => return Ok(None),
            SystemDomainRemoval::LastOne => (Reason::IsOnly, 0),
            SystemDomainRemoval::IsDefault => (Reason::IsDefault, 0),
            SystemDomainRemoval::InUse(mailboxes) => (Reason::InUse, mailboxes),
        };
        let status = SystemDomainStatus {
            domain_id: self.status.as_ref().and_then(|status| status.domain_id.clone()),
            ..SystemDomainStatus::default()
        };
        let mut standing = Standing::not_ready(status, reason, Outlook::Waits).soon();
        if mailboxes > 0 {
            standing = standing
                .explained(format!("The domain is deleted once no mailbox uses it; now {mailboxes} do."));
        }
        Ok(Some(standing))
    }
}

/// All that decides about an object.
async fn observe(object: &SystemDomain, context: &Context) -> Result<World, Failure> {
    noted(object, context).await?;
    Ok(World {
        name: normalize_domain(&object.spec.domain).ok(),
        domain: context.store.find_managed_system_domain(uid(object)).await?,
        claim: claim(object, context).await?,
    })
}

/// What comes of an object that says that its domain is the default one: the oldest such object is
/// right. One that is being deleted says nothing any more, and one that is not accepted has no domain.
async fn claim(object: &SystemDomain, context: &Context) -> Result<Claim, Failure> {
    if !object.spec.default {
        return Ok(Claim::None);
    }
    let all: Api<DeserializeGuard<SystemDomain>> = Api::all(context.client.clone());
    let all = all.list(&ListParams::default()).await?;
    let has_older = all.iter().filter_map(|other| other.0.as_ref().ok()).any(|other| {
        other.spec.default
            && other.metadata.deletion_timestamp.is_none()
            && age(other) < age(object)
            && !is_refused(other)
    });
    Ok(if has_older { Claim::Lost } else { Claim::Won })
}

/// Whether it was told that it is not accepted. One that was not looked at yet may be.
fn is_refused(object: &SystemDomain) -> bool {
    let conditions = object.status.iter().flat_map(|status| &status.conditions);
    conditions.into_iter().any(|one| {
        one.type_ == ConditionType::Accepted.as_str()
            && one.status == Truth::False.as_str()
            && one.observed_generation == object.metadata.generation
    })
}

/// By which objects are ordered, the oldest first.
fn age(object: &SystemDomain) -> (Option<Timestamp>, Option<String>) {
    (object.creation_timestamp().map(|created| created.0), object.uid())
}

/// Carries out one step; says why the domain can't be declared.
async fn act(
    object: &SystemDomain,
    step: Step<'_>,
    context: &Context,
) -> Result<Result<(), DeclareError>, Failure> {
    let Step::Declare { name, default } = step;
    let domain = SystemDomainDeclaration {
        name,
        shared_inboxes: object.spec.shared_inboxes,
        sort_order: object.spec.sort_order,
        default,
    };
    let now = context.clock.now();
    let declared = context.store.declare_system_domain(context.epoch, uid(object), domain, now).await?;
    Ok(declared.map(|_declared| ()))
}
