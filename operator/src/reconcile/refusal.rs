//! Why a step was not carried out, with what its message says about it.

use tempmail_store::{DeclareError, LimitUsage, ResourceKind, RowHolder};

use super::context::Context;
use super::secret_error::SecretError;
use crate::error::ReconcileError;
use crate::kind::{Kind, uid};

/// A step that is refused, now and on each retry until something else changes. It becomes a status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The row can't be declared for another reason than those below.
    Row(DeclareError),
    /// Another object has the row: this one, if it is known.
    Claimed(Option<RowHolder>),
    /// An object of another cluster has the row.
    HeldByAnotherCluster(RowHolder),
    /// The tenant has as many rows of the kind as it may have.
    LimitReached(LimitUsage),
    /// The Secret can't be written, or read.
    Secret(SecretError),
}

/// A step that was not carried out.
#[derive(Debug)]
pub(crate) enum StepError {
    /// The row can't be declared.
    Row(DeclareError),
    /// The Secret can't be written.
    Secret(SecretError),
    /// It failed, and is retried.
    Failed(ReconcileError),
}

/// Finds out what there is to say about a row that can't be declared.
pub(crate) async fn explain<K: Kind>(
    object: &K,
    error: DeclareError,
    context: &Context,
) -> Result<Refusal, ReconcileError> {
    let holder = find_holder(object, context).await?;
    Ok(match (error, holder) {
        (_, Some(holder)) if holder.cluster != context.cluster => Refusal::HeldByAnotherCluster(holder),
        (DeclareError::ManagedByAnother, holder) => Refusal::Claimed(holder),
        (DeclareError::LimitReached, _) => Refusal::LimitReached(find_usage(object, context).await?),
        (error, _) => Refusal::Row(error),
    })
}

/// The other object that has what this one declares.
async fn find_holder<K: Kind>(object: &K, context: &Context) -> Result<Option<RowHolder>, ReconcileError> {
    let Some(declared) = object.declared() else { return Ok(None) };
    let tenant = object.tenant_name();
    Ok(context.store.find_row_holder(uid(object), K::KIND, declared, tenant).await?)
}

/// How many rows of the object's kind its tenant has, and may have.
async fn find_usage<K: Kind>(object: &K, context: &Context) -> Result<LimitUsage, ReconcileError> {
    let name = object.tenant_name().ok_or(ReconcileError::Stale)?;
    let tenant = context.store.find_tenant(name, context.clock.now()).await?.ok_or(ReconcileError::Stale)?;
    match K::KIND {
        ResourceKind::CustomDomain => Ok(tenant.domains),
        ResourceKind::Webhook => Ok(tenant.webhooks),
        ResourceKind::ApiToken => Ok(tenant.tokens),
        ResourceKind::Mailbox => Ok(tenant.mailboxes),
        ResourceKind::Tenant | ResourceKind::SystemDomain => Err(ReconcileError::Stale),
    }
}

impl From<DeclareError> for StepError {
    fn from(error: DeclareError) -> Self {
        match error {
            // The Tenant was replaced after it was observed.
            DeclareError::TenantChanged => Self::Failed(ReconcileError::Stale),
            error => Self::Row(error),
        }
    }
}

impl From<SecretError> for StepError {
    fn from(error: SecretError) -> Self {
        Self::Secret(error)
    }
}

impl<E: Into<ReconcileError>> From<E> for StepError {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}
