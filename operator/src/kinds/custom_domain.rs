//! Custom domains: declared here, verified by the loop over all domains, shown here.

mod plan;

use kube::ResourceExt as _;
use tempmail_crds::{
    AdoptionPolicy, CustomDomain, CustomDomainStatus, DeletionPolicy, VerificationState, annotation,
};
use tempmail_store::{CustomDomainDeclaration, DeclareOutcome, LimitUsage, Resource, Tenant};
use tempmail_verification::custom_domain_name;
use uuid::Uuid;

use self::plan::{CustomDomainStep, ObservedCustomDomain};
use crate::error::ReconcileError;
use crate::kind::{Kind, uid};
use crate::reconcile::context::Context;
use crate::reconcile::driver::{Plan, Reconcile, Release, ReleaseTerms};
use crate::reconcile::grant;
use crate::reconcile::refusal::{Refusal, StepError};
use crate::reconcile::secret::Issued;
use crate::reconcile::vanished::{find_predecessor, release_predecessor};
use crate::reconcile::watched_kind::Dependency;
use crate::status::{StatusUpdate, message};

impl Kind for CustomDomain {
    const PLURAL: &'static str = "custom domains";

    fn is_retained(&self) -> bool {
        self.spec.deletion_policy == DeletionPolicy::Retain
    }

    fn tenant_name(&self) -> Option<&str> {
        Some(&self.spec.tenant_ref.name)
    }

    fn declared(&self) -> Option<&str> {
        Some(&self.spec.domain)
    }

    fn domain_name(&self) -> Option<&str> {
        Some(&self.spec.domain)
    }

    fn usage(tenant: &Tenant) -> Option<LimitUsage> {
        Some(tenant.domains)
    }
}

impl Reconcile for CustomDomain {
    type Observed = ObservedCustomDomain;
    type Step = CustomDomainStep;

    async fn observe(
        &self,
        resource: Resource,
        _issued: &Issued,
        context: &Context,
    ) -> Result<ObservedCustomDomain, ReconcileError> {
        let grant = grant::find(self, &resource, context).await?;
        let domain = context.store.find_managed_custom_domain(uid(self)).await?;
        let predecessor = match grant.tenant(self) {
            Ok(tenant) if domain.is_none() => find_predecessor(self, Some(tenant), context).await?,
            _ => None,
        };
        let requested = self.annotations().get(annotation::VERIFY);
        let handled = resource.verify_handled;
        Ok(ObservedCustomDomain {
            grant,
            name: custom_domain_name(&self.spec.domain).ok(),
            domain,
            predecessor,
            check_requested: requested.filter(|requested| handled.as_ref() != Some(requested)).cloned(),
            check_handled: handled,
            mx_host: context.verifier.settings().mx_host.clone(),
        })
    }

    fn plan(&self, observed: &ObservedCustomDomain) -> Plan<CustomDomainStep, CustomDomainStatus> {
        plan::plan(self, observed)
    }

    async fn act(
        &self,
        step: CustomDomainStep,
        observed: &ObservedCustomDomain,
        _issued: &mut Issued,
        context: &Context,
    ) -> Result<(), StepError> {
        let (store, epoch, uid, now) = (&context.store, context.epoch, uid(self), context.clock.now());
        let rules = context.verifier.settings();
        match step {
            CustomDomainStep::Deactivate => store.deactivate_custom_domain(epoch, uid).await?,
            CustomDomainStep::ReleasePredecessor => {
                release_predecessor(self, observed.predecessor.as_ref(), None, context).await?;
            }
            CustomDomainStep::Declare { tenant, name } => {
                let domain = CustomDomainDeclaration {
                    tenant,
                    name: &name,
                    token: &context.verify_tokens.token_for(tenant, &name),
                    adopt: self.spec.adoption_policy == AdoptionPolicy::IfUnowned,
                    installation_names: &rules.installation_names,
                    deadline: now + rules.pending,
                    next_check_at: now,
                };
                let outcome = store.declare_custom_domain(epoch, uid, domain, now).await??;
                if outcome == DeclareOutcome::Adopted {
                    let adopted = message::adopted(&format!("the custom domain {name}"));
                    context.events.publish(self, &adopted).await;
                }
            }
            CustomDomainStep::Check { domain, requested } => {
                store.restart_domain_verification(epoch, uid, &requested, now + rules.pending, now).await?;
                // If the process dies here, the verification loop checks the domain when it is due.
                context.verifier.check(domain).await?;
            }
        }
        Ok(())
    }

    fn refused(&self, observed: &ObservedCustomDomain, refusal: Refusal) -> StatusUpdate<CustomDomainStatus> {
        plan::refused(self, observed, &refusal)
    }

    fn enqueue_dependents(&self, update: &StatusUpdate<CustomDomainStatus>, context: &Context) {
        if is_verified(Some(&update.status)) != is_verified(self.status.as_ref()) {
            // Mailboxes under the domain can be created now, or are no longer served.
            context.kinds.enqueue_dependents(Dependency::Domain(&self.spec.domain));
        }
    }

    async fn release(uid: Uuid, terms: &ReleaseTerms, context: &Context) -> Result<Release, ReconcileError> {
        let (retained, granting) = (terms.retained, &terms.granting);
        let (epoch, now) = (context.epoch, context.clock.now());
        context.store.release_custom_domain(epoch, uid, retained, granting, now).await?;
        Ok(Release::Released)
    }

    fn enqueue_after_release(&self, context: &Context) {
        // Another object may be waiting for the domain.
        context.kinds.enqueue_dependents(Dependency::Domain(&self.spec.domain));
    }
}

fn is_verified(status: Option<&CustomDomainStatus>) -> bool {
    let verification = status.and_then(|status| status.verification.as_ref());
    verification.is_some_and(|verification| verification.state == VerificationState::Verified)
}
