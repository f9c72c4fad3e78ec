//! Tenants.

mod plan;

use kube::ResourceExt as _;
use tempmail_crds::{DeletionPolicy, Tenant, TenantStatus};
use tempmail_store::{DeclareOutcome, Resource};
use uuid::Uuid;

use self::plan::{ObservedTenant, TenantStep, adopted_id, declaration};
use crate::error::ReconcileError;
use crate::kind::{Kind, uid};
use crate::reconcile::context::Context;
use crate::reconcile::driver::{Plan, Reconcile, Release, ReleaseTerms};
use crate::reconcile::refusal::{Refusal, StepError};
use crate::reconcile::secret::Issued;
use crate::reconcile::vanished::{find_predecessor, release_predecessor};
use crate::reconcile::watched_kind::Dependency;
use crate::status::{Message, StatusUpdate, message};

impl Kind for Tenant {
    const PLURAL: &'static str = "tenants";
    const GIVES_GRANTS: bool = true;

    fn is_retained(&self) -> bool {
        self.spec.deletion_policy == DeletionPolicy::Retain
    }

    fn declared(&self) -> Option<&str> {
        self.metadata.name.as_deref()
    }
}

impl Reconcile for Tenant {
    type Observed = ObservedTenant;
    type Step = TenantStep;

    async fn observe(
        &self,
        resource: Resource,
        _issued: &Issued,
        context: &Context,
    ) -> Result<ObservedTenant, ReconcileError> {
        let tenant = match resource.row_id {
            Some(id) => context.store.find_tenant_by_id(id, context.clock.now()).await?,
            None => None,
        };
        let predecessor = if tenant.is_none() { find_predecessor(self, None, context).await? } else { None };
        let chosen = adopted_id(self).ok().flatten();
        let gives_way = match (&tenant, chosen) {
            (Some(tenant), Some(other)) if tenant.id != other => {
                context.store.tenant_gives_way(tenant.id, other, context.clock.now()).await?
            }
            _ => false,
        };
        // A tenant of a released cluster is left where the annotation names another one.
        let predecessor = predecessor.filter(|former| {
            former.cluster == context.cluster || chosen.is_none_or(|id| former.row_id == Some(id))
        });
        Ok(ObservedTenant { tenant, gives_way, predecessor })
    }

    fn plan(&self, observed: &ObservedTenant) -> Plan<TenantStep, TenantStatus> {
        plan::plan(self, observed)
    }

    async fn act(
        &self,
        step: TenantStep,
        observed: &ObservedTenant,
        _issued: &mut Issued,
        context: &Context,
    ) -> Result<(), StepError> {
        match step {
            TenantStep::ReleasePredecessor { adopt } => {
                release_predecessor(self, observed.predecessor.as_ref(), adopt, context).await?;
            }
            TenantStep::Declare { adopt } => {
                let (tenant, now) = (declaration(self, adopt), context.clock.now());
                let outcome = context.store.declare_tenant(context.epoch, uid(self), tenant, now).await??;
                if let (DeclareOutcome::Adopted, Some(id)) = (outcome, adopt) {
                    context.events.publish(self, &message::adopted(&format!("the tenant {id}"))).await;
                }
            }
        }
        Ok(())
    }

    fn refused(&self, _observed: &ObservedTenant, refusal: Refusal) -> StatusUpdate<TenantStatus> {
        plan::refused(self, &refusal)
    }

    fn enqueue_dependents(&self, update: &StatusUpdate<TenantStatus>, context: &Context) {
        let former = self.status.as_ref();
        let is_new = former.and_then(|status| status.tenant_id.as_ref()) != update.status.tenant_id.as_ref();
        let is_changed = former.and_then(|status| status.observed_generation) != self.metadata.generation;
        if is_new || is_changed {
            // Objects may be waiting for the tenant, and a change may allow other namespaces.
            context.kinds.enqueue_dependents(Dependency::Tenant(&self.name_any()));
        }
    }

    async fn release(uid: Uuid, terms: &ReleaseTerms, context: &Context) -> Result<Release, ReconcileError> {
        let hold_days = context.config.limits.address_hold_days;
        let (epoch, now) = (context.epoch, context.clock.now());
        context.store.release_tenant(epoch, uid, terms.retained, now, hold_days).await?;
        Ok(Release::Released)
    }

    fn released(&self) -> Option<Message> {
        let id = self.status.as_ref()?.tenant_id.as_ref()?.parse().ok()?;
        self.is_retained().then(|| message::tenant_retained(&self.name_any(), id))
    }

    fn enqueue_after_release(&self, context: &Context) {
        context.kinds.enqueue_dependents(Dependency::Tenant(&self.name_any()));
    }
}
