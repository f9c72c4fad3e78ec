//! Custom domains: declared here, verified by the loop over all of them, shown here.

mod plan;

use kube::ResourceExt as _;
use tempmail_crds::{
    AdoptionPolicy, CustomDomain, CustomDomainStatus, DeletionPolicy, VerificationState, annotation,
};
use tempmail_store::{CustomDomainDeclaration, DeclareError};
use tempmail_verification::custom_domain_name;

use self::plan::{Next, Step, World, plan};
use crate::context::Context;
use crate::controller::uid;
use crate::failure::Failure;
use crate::identity::noted;
use crate::kind::{Kind, kind};
use crate::standing::Standing;
use crate::tenancy::Of;
use crate::{orphan, tenancy};

/// Looks and steps in one reconciliation at most.
const STEPS: usize = 6;

impl Kind for CustomDomain {
    kind!(CustomDomain, CustomDomainStatus, namespaced);

    fn is_retained(&self) -> bool {
        self.spec.deletion_policy == DeletionPolicy::Retain
    }

    fn tenant_name(&self) -> Option<&str> {
        Some(&self.spec.tenant_ref.name)
    }

    fn domain_name(&self) -> Option<&str> {
        Some(&self.spec.domain)
    }

    async fn make_true(&self, context: &Context) -> Result<Standing<CustomDomainStatus>, Failure> {
        for _ in 0..STEPS {
            let world = observe(self, context).await?;
            match plan(self, &world, &context.verifier.settings().mx_host) {
                Next::Done(standing) => {
                    if is_verified(Some(&standing.status)) != is_verified(self.status.as_ref()) {
                        // Mailboxes under it may be made now, or serve no longer.
                        context.pull_dependents(&Of::Domain(&self.spec.domain));
                    }
                    return Ok(standing);
                }
                Next::Step(step) => {
                    if let Err(refused) = act(self, step, context).await? {
                        return Ok(plan::refused(&world, refused));
                    }
                }
            }
        }
        Err(Failure::Unsettled)
    }

    async fn let_go(&self, context: &Context) -> Result<Option<Standing<CustomDomainStatus>>, Failure> {
        orphan::release(Self::KIND, uid(self), self.is_retained(), context).await?;
        // Another object may wait for the name.
        context.pull_dependents(&Of::Domain(&self.spec.domain));
        Ok(None)
    }
}

fn is_verified(status: Option<&CustomDomainStatus>) -> bool {
    let verification = status.and_then(|status| status.verification.as_ref());
    verification.is_some_and(|verification| verification.state == VerificationState::Verified)
}

/// All that decides about an object.
async fn observe(object: &CustomDomain, context: &Context) -> Result<World, Failure> {
    let resource = noted(object, context).await?;
    Ok(World {
        tenancy: tenancy::resolve(object, context).await?,
        name: custom_domain_name(&object.spec.domain).ok(),
        domain: context.store.find_managed_custom_domain(uid(object)).await?,
        asked: object
            .annotations()
            .get(annotation::VERIFY)
            .filter(|asked| resource.verify_handled.as_ref() != Some(asked))
            .cloned(),
        handled: resource.verify_handled,
    })
}

/// Carries out one step; says why the domain can't be declared.
async fn act(
    object: &CustomDomain,
    step: Step<'_>,
    context: &Context,
) -> Result<Result<(), DeclareError>, Failure> {
    let (store, epoch, uid, now) = (&context.store, context.epoch, uid(object), context.clock.now());
    let rules = context.verifier.settings();
    match step {
        Step::Withhold => store.deactivate_custom_domain(epoch, uid).await?,
        Step::Declare { tenant, name } => {
            orphan::succeed(object, Some(tenant), None, context).await?;
            let domain = CustomDomainDeclaration {
                tenant,
                name,
                token: &context.verify_tokens.of(tenant, name),
                adopt: object.spec.adoption_policy == AdoptionPolicy::IfUnowned,
                installation_names: &rules.installation_names,
                deadline: now + rules.pending,
                next_check_at: now,
            };
            if let Err(refused) = store.declare_custom_domain(epoch, uid, domain, now).await? {
                return Ok(Err(refused));
            }
        }
        Step::Check { domain, asked } => {
            store.restart_domain_verification(epoch, uid, asked, now + rules.pending, now).await?;
            context.verifier.check(domain).await?;
        }
    }
    Ok(Ok(()))
}
