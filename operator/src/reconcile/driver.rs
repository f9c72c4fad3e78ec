//! One reconciliation: observe, plan one step without I/O, carry it out, and observe again.

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use kube::ResourceExt as _;
use kube::runtime::controller::Action;
use tempmail_crds::annotation;
use tempmail_store::Resource;
use uuid::Uuid;

use super::backoff::jittered;
use super::context::Context;
use super::grant;
use super::ownership::{ensure_finalizer, ensure_recorded, remove_finalizer};
use super::refusal::{self, Refusal, StepError};
use super::secret::Issued;
use crate::error::ReconcileError;
use crate::kind::{Kind, uid};
use crate::status::message::{domain_in_use, domain_is_default, domain_is_only};
use crate::status::{Message, Progress, StatusUpdate};

/// Upper bound of steps in one reconciliation.
pub(crate) const STEP_LIMIT: usize = 16;
/// Interval at which an object is reconciled without a trigger.
const RESYNC: Duration = Duration::from_secs(600);
/// Value of the annotation that pauses an object.
const TRUE: &str = "true";

/// What a plan decides.
#[derive(Debug)]
pub(crate) enum Plan<Step, Status> {
    /// Carry this step out, then observe again.
    Step(Step),
    /// Nothing is left to do.
    Done(StatusUpdate<Status>),
}

/// What decides on a row whose object is deleted or gone.
#[derive(Debug, Clone)]
pub(crate) struct ReleaseTerms {
    /// Whether the deletion policy keeps the row.
    pub retained: bool,
    /// The uids of the Tenants that allow the object's namespace. A row of another tenant is kept, and gives no access.
    pub granting: Vec<Uuid>,
}

/// What came of releasing the row of a deleted object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Release {
    /// The row is released, or there was none.
    Released,
    /// The row is still needed.
    Blocked(ReleaseBlock),
}

/// Why the row of a deleted SystemDomain is still needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReleaseBlock {
    /// So many mailboxes use the domain.
    InUse(i64),
    /// It is the default domain.
    IsDefault,
    /// It is the only system domain.
    IsOnly,
}

impl ReleaseBlock {
    fn message(self, domain: &str) -> Message {
        match self {
            Self::InUse(mailboxes) => domain_in_use(domain, mailboxes),
            Self::IsDefault => domain_is_default(domain),
            Self::IsOnly => domain_is_only(domain),
        }
    }
}

/// How a kind is reconciled.
pub(crate) trait Reconcile: Kind {
    /// Objects that are reconciled concurrently.
    const CONCURRENCY: u16 = 16;
    /// Everything that the plan depends on.
    type Observed: Send + Sync;
    /// One write: one statement in Postgres, or one request to the API server that is bound to what was
    /// observed. The process may be killed before and after each.
    type Step: Debug + Send;

    /// Reads everything that the plan depends on.
    fn observe(
        &self,
        resource: Resource,
        issued: &Issued,
        context: &Context,
    ) -> impl Future<Output = Result<Self::Observed, ReconcileError>> + Send;

    /// Decides on the next step, without I/O.
    fn plan(&self, observed: &Self::Observed) -> Plan<Self::Step, Self::Status>;

    /// Carries out a step.
    fn act(
        &self,
        step: Self::Step,
        observed: &Self::Observed,
        issued: &mut Issued,
        context: &Context,
    ) -> impl Future<Output = Result<(), StepError>> + Send;

    /// The status of an object whose step was refused.
    fn refused(&self, observed: &Self::Observed, refusal: Refusal) -> StatusUpdate<Self::Status>;

    /// Enqueues the objects that depend on what this one's status is about to say.
    fn enqueue_dependents(&self, _update: &StatusUpdate<Self::Status>, _context: &Context) {}

    /// Releases the row of an object of this kind that is deleted or gone, in one statement. Idempotent.
    fn release(
        uid: Uuid,
        terms: &ReleaseTerms,
        context: &Context,
    ) -> impl Future<Output = Result<Release, ReconcileError>> + Send;

    /// What an event says about the release of this object, if it is more than that it is gone.
    fn released(&self) -> Option<Message> {
        None
    }

    /// Enqueues the objects that depend on the release of this one.
    fn enqueue_after_release(&self, _context: &Context) {}
}

/// Brings an object to its declared state and its status up to date; or finalizes it, if it is deleted.
pub(crate) async fn reconcile_object<K: Reconcile>(
    object: &K,
    context: &Context,
) -> Result<Action, ReconcileError> {
    if object.meta().deletion_timestamp.is_some() {
        return finalize(object, context).await;
    }
    if is_paused(object) {
        context.status.pause(object).await?;
        return Ok(Action::await_change());
    }
    let object = &*ensure_finalizer(object, context).await?;
    let mut update = converge(object, context).await?;
    if let Some(tenant) = object.tenant_name() {
        update = update.accepted_by(tenant);
        if context.store.is_tenant_suspended(tenant).await? {
            update = update.suspended(tenant);
        }
    }
    object.enqueue_dependents(&update, context);
    write_status(object, update, context).await
}

/// Whether an annotation pauses the reconciliation.
pub(super) fn is_paused<K: Kind>(object: &K) -> bool {
    object.annotations().get(annotation::PAUSED).is_some_and(|value| value == TRUE)
}

/// Carries out steps until none is left or one is refused.
async fn converge<K: Reconcile>(
    object: &K,
    context: &Context,
) -> Result<StatusUpdate<K::Status>, ReconcileError> {
    let mut issued = Issued::default();
    for _ in 0..STEP_LIMIT {
        let resource = ensure_recorded(object, context).await?;
        let observed = object.observe(resource, &issued, context).await?;
        let step = match object.plan(&observed) {
            Plan::Step(step) => step,
            Plan::Done(update) => return Ok(update),
        };
        let refusal = match object.act(step, &observed, &mut issued, context).await {
            Ok(()) => continue,
            Err(StepError::Row(error)) => refusal::explain(object, error, context).await?,
            Err(StepError::Secret(error)) => Refusal::Secret(error),
            Err(StepError::Failed(error)) => return Err(error),
        };
        return Ok(object.refused(&observed, refusal));
    }
    Err(ReconcileError::StepLimitReached)
}

/// Releases the row of a deleted object, then removes the finalizer.
async fn finalize<K: Reconcile>(object: &K, context: &Context) -> Result<Action, ReconcileError> {
    let granting = grant::find_granting(object.namespace().as_deref(), None, context).await?;
    let terms = ReleaseTerms { retained: object.is_retained(), granting };
    match K::release(uid(object), &terms, context).await? {
        Release::Blocked(block) => {
            let status = object.status().cloned().unwrap_or_default();
            let message = block.message(object.declared().unwrap_or_default());
            let update = StatusUpdate::not_ready(status, message, Progress::Reconciling).retry_soon();
            write_status(object, update, context).await
        }
        Release::Released => {
            if let Some(message) = object.released() {
                context.events.publish(object, &message).await;
            }
            object.enqueue_after_release(context);
            context.refresh_usage(object);
            remove_finalizer(&object.api(&context.client), object.meta(), context).await?;
            Ok(Action::await_change())
        }
    }
}

async fn write_status<K: Kind>(
    object: &K,
    update: StatusUpdate<K::Status>,
    context: &Context,
) -> Result<Action, ReconcileError> {
    let requeue_after = update.requeue_after.map_or(RESYNC, |after| after.min(RESYNC));
    if context.status.update(object, update).await? {
        context.refresh_usage(object);
    }
    Ok(Action::requeue(jittered(requeue_after)))
}
