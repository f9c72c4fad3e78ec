//! Domains of the installation.

mod plan;

use jiff::Timestamp;
use kube::api::ListParams;
use kube::core::DeserializeGuard;
use kube::{Api, ResourceExt as _};
use tempmail_crds::{SystemDomain, SystemDomainStatus};
use tempmail_model::address::normalize_domain;
use tempmail_store::{DeclareOutcome, Resource, SystemDomainDeclaration, SystemDomainRemoval};
use uuid::Uuid;

use self::plan::{DefaultClaim, ObservedSystemDomain, SystemDomainStep};
use crate::error::ReconcileError;
use crate::kind::{Kind, uid};
use crate::reconcile::context::Context;
use crate::reconcile::driver::{Plan, Reconcile, Release, ReleaseBlock, ReleaseTerms};
use crate::reconcile::refusal::{Refusal, StepError};
use crate::reconcile::secret::Issued;
use crate::status::{ConditionStatus, ConditionType, StatusUpdate, message};

impl Kind for SystemDomain {
    const PLURAL: &'static str = "system domains";

    fn declared(&self) -> Option<&str> {
        Some(&self.spec.domain)
    }
}

impl Reconcile for SystemDomain {
    /// Which domain is the default one depends on the status of the others: an object that another displaces meanwhile
    /// would displace it in turn.
    const CONCURRENCY: u16 = 1;
    type Observed = ObservedSystemDomain;
    type Step = SystemDomainStep;

    async fn observe(
        &self,
        _resource: Resource,
        _issued: &Issued,
        context: &Context,
    ) -> Result<ObservedSystemDomain, ReconcileError> {
        Ok(ObservedSystemDomain {
            name: normalize_domain(&self.spec.domain).ok(),
            domain: context.store.find_managed_system_domain(uid(self)).await?,
            claim: default_claim(self, context).await?,
        })
    }

    fn plan(&self, observed: &ObservedSystemDomain) -> Plan<SystemDomainStep, SystemDomainStatus> {
        plan::plan(self, observed)
    }

    async fn act(
        &self,
        step: SystemDomainStep,
        observed: &ObservedSystemDomain,
        _issued: &mut Issued,
        context: &Context,
    ) -> Result<(), StepError> {
        let SystemDomainStep::Declare { name, default } = step;
        let domain = SystemDomainDeclaration {
            name: &name,
            shared_inboxes: self.spec.shared_inboxes,
            sort_order: self.spec.sort_order,
            default,
        };
        let now = context.clock.now();
        let outcome = context.store.declare_system_domain(context.epoch, uid(self), domain, now).await??;
        if outcome != DeclareOutcome::Created && observed.domain.is_none() {
            let adopted = message::adopted(&format!("the system domain {name}"));
            context.events.publish(self, &adopted).await;
        }
        Ok(())
    }

    fn refused(
        &self,
        _observed: &ObservedSystemDomain,
        refusal: Refusal,
    ) -> StatusUpdate<SystemDomainStatus> {
        plan::refused(self, &refusal)
    }

    async fn release(uid: Uuid, _terms: &ReleaseTerms, context: &Context) -> Result<Release, ReconcileError> {
        let now = context.clock.now();
        Ok(match context.store.release_system_domain(context.epoch, uid, now).await? {
            SystemDomainRemoval::Removed | SystemDomainRemoval::NotFound => Release::Released,
            SystemDomainRemoval::LastOne => Release::Blocked(ReleaseBlock::IsOnly),
            SystemDomainRemoval::IsDefault => Release::Blocked(ReleaseBlock::IsDefault),
            SystemDomainRemoval::InUse(mailboxes) => Release::Blocked(ReleaseBlock::InUse(mailboxes)),
        })
    }
}

/// Whether the object's domain is to be the default one: the oldest object that claims it wins. Objects that
/// are deleted or not accepted do not count.
async fn default_claim(object: &SystemDomain, context: &Context) -> Result<DefaultClaim, ReconcileError> {
    if !object.spec.default {
        return Ok(DefaultClaim::None);
    }
    let all: Api<DeserializeGuard<SystemDomain>> = Api::all(context.client.clone());
    let all = all.list(&ListParams::default()).await?;
    let older = all.iter().filter_map(|other| other.0.as_ref().ok()).filter(|other| {
        other.spec.default
            && other.metadata.deletion_timestamp.is_none()
            && age(other) < age(object)
            && !is_not_accepted(other)
    });
    let oldest = older.min_by_key(|other| age(other));
    Ok(oldest.map_or(DefaultClaim::Won, |oldest| DefaultClaim::Lost(oldest.name_any())))
}

/// Whether the status of this generation says that the object is not accepted. An object without a status may
/// still be accepted.
fn is_not_accepted(object: &SystemDomain) -> bool {
    let conditions = object.status.iter().flat_map(|status| &status.conditions);
    conditions.into_iter().any(|condition| {
        condition.type_ == ConditionType::Accepted.as_str()
            && condition.status == ConditionStatus::False.as_str()
            && condition.observed_generation == object.metadata.generation
    })
}

/// Sort key of objects, the oldest first.
fn age(object: &SystemDomain) -> (Option<Timestamp>, Option<String>) {
    (object.creation_timestamp().map(|created| created.0), object.uid())
}
