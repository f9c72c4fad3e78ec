//! Tenants.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::ResourceExt as _;
use tempmail_crds::{DeletionPolicy, Tenant, TenantStatus, TenantUsage, annotation};
use tempmail_model::retention::RetentionClass;
use tempmail_store::{DeclareError, DeclareOutcome, LimitUsage, TenantDeclaration, TenantLimits};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::context::Context;
use crate::controller::uid;
use crate::failure::Failure;
use crate::identity::noted;
use crate::kind::{Kind, kind};
use crate::orphan;
use crate::standing::{ConditionType, Outlook, Reason, Standing, Truth, Verdict};
use crate::tenancy::Of;
use crate::trigger::ObjectKey;

/// Time between two counts of the usage of tenants whose objects came, changed or went. What comes and
/// goes over HTTP is counted at each look in turn.
const COUNT: Duration = Duration::from_secs(10);

impl Kind for Tenant {
    kind!(Tenant, TenantStatus, cluster);

    fn is_retained(&self) -> bool {
        self.spec.deletion_policy == DeletionPolicy::Retain
    }

    fn tenant_name(&self) -> Option<&str> {
        None
    }

    async fn make_true(&self, context: &Context) -> Result<Standing<TenantStatus>, Failure> {
        let resource = noted(self, context).await?;
        let now = context.clock.now();
        let Ok(declared) = declared(self) else {
            return Ok(Standing::refused(TenantStatus::default(), Reason::InvalidSpec, Outlook::Stuck)
                .explained("The annotation tempmail.dev/adopt-tenant is not the id of a tenant."));
        };
        if resource.row_id.is_none() {
            orphan::succeed(self, None, declared.adopt, context).await?;
        }
        let is_new = match context.store.declare_tenant(context.epoch, uid(self), declared, now).await? {
            Ok(declared) => declared != DeclareOutcome::Existing,
            Err(refused) => {
                let reason = match refused {
                    DeclareError::NotAdoptable => Reason::TenantNotAdoptable,
                    _ => Reason::TenantNameTaken,
                };
                return Ok(Standing::refused(TenantStatus::default(), reason, Outlook::Stuck));
            }
        };
        let observed = self.status.as_ref().and_then(|status| status.observed_generation);
        if is_new || observed != self.metadata.generation {
            // It is there now, or may allow others than before.
            context.pull_dependents(&Of::Tenant(&self.name_any()));
        }
        let resource = match resource.row_id {
            Some(_) => resource,
            None => noted(self, context).await?,
        };
        let Some(id) = resource.row_id else { return Err(Failure::Unsettled) };
        let standing = standing(id, context).await?;
        Ok(match declared.adopt {
            Some(asked) if asked != id => standing.explained(adopts_no_other(id)),
            _ => standing,
        })
    }

    async fn let_go(&self, context: &Context) -> Result<Option<Standing<TenantStatus>>, Failure> {
        orphan::release(Self::KIND, uid(self), self.is_retained(), context).await?;
        context.pull_dependents(&Of::Tenant(&self.name_any()));
        Ok(None)
    }
}

/// What an object says of its tenant.
fn declared(object: &Tenant) -> Result<TenantDeclaration<'_>, uuid::Error> {
    let (spec, limits) = (&object.spec, &object.spec.limits);
    let adopt = object.annotations().get(annotation::ADOPT_TENANT);
    Ok(TenantDeclaration {
        name: object.metadata.name.as_deref().unwrap_or_default(),
        adopt: adopt.map(|id| id.parse()).transpose()?,
        suspended: spec.suspended,
        limits: TenantLimits {
            retention: i16::try_from(spec.retention_hours)
                .ok()
                .and_then(|hours| RetentionClass::try_from(hours).ok())
                .unwrap_or(RetentionClass::PRO),
            mailboxes: limits.mailboxes,
            domains: limits.custom_domains,
            webhooks: limits.webhooks,
            tokens: limits.tokens,
            mailbox_bytes: limits.mailbox_bytes,
        },
    })
}

/// What is said where the annotation names another tenant than the object has.
fn adopts_no_other(id: Uuid) -> String {
    format!(
        "All is as the object says, but for the annotation tempmail.dev/adopt-tenant, which is ignored: the \
         object has the tenant {id} already. Remove the annotation; to take over the tenant that it names, \
         make another Tenant with it."
    )
}

/// How a tenant that is what its object says stands.
async fn standing(id: Uuid, context: &Context) -> Result<Standing<TenantStatus>, Failure> {
    let Some(tenant) = context.store.find_tenant_by_id(id, context.clock.now()).await? else {
        return Err(Failure::Unsettled);
    };
    let usage = TenantUsage {
        mailboxes: tenant.mailboxes.used,
        custom_domains: tenant.domains.used,
        webhooks: tenant.webhooks.used,
        tokens: tenant.tokens.used,
    };
    let status =
        TenantStatus { tenant_id: Some(id.to_string()), usage: Some(usage), ..TenantStatus::default() };
    let is_over = |share: LimitUsage| share.used > i64::from(share.limit);
    let standing = Standing::ready(status);
    if [tenant.mailboxes, tenant.domains, tenant.webhooks, tenant.tokens].into_iter().any(is_over) {
        return Ok(standing.with(Verdict::new(
            ConditionType::QuotaExceeded,
            Truth::True,
            Reason::QuotaExceeded,
        )));
    }
    Ok(standing)
}

/// Tenants whose objects came, changed or went since their usage was counted last, by name.
#[derive(Debug, Default)]
pub(crate) struct Recounts(Mutex<HashSet<String>>);

impl Recounts {
    /// Has the usage of a tenant counted soon.
    pub(crate) fn ask(&self, tenant: &str) {
        let mut asked = self.lock();
        if !asked.contains(tenant) {
            asked.insert(tenant.to_owned());
        }
    }

    fn take(&self) -> HashSet<String> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<String>> {
        // Every change is a single one: a panic elsewhere leaves the set whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Has the Tenants looked at whose usage is to be counted, until `stop` is cancelled. However many
/// objects come at once, a Tenant is written to once in this time.
pub(crate) async fn follow_usage(context: Arc<Context>, stop: CancellationToken) {
    while stop.run_until_cancelled(tokio::time::sleep(COUNT)).await.is_some() {
        for name in context.recounts.take() {
            context.triggers.pull(Tenant::KIND, ObjectKey { namespace: None, name });
        }
    }
}
