//! Tenants.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use kube::ResourceExt as _;
use tempmail_crds::{DeletionPolicy, Tenant, TenantStatus, TenantUsage, annotation};
use tempmail_model::retention::RetentionClass;
use tempmail_store::{Declared, DeclaredTenant, NotDeclared, Share};
use uuid::Uuid;

use crate::context::Context;
use crate::controller::uid;
use crate::failure::Failure;
use crate::identity::noted;
use crate::kind::{Kind, kind};
use crate::orphan;
use crate::standing::{ConditionType, Outlook, Reason, Standing, Truth, Verdict};
use crate::tenancy::Of;

/// Usage in the status is brought up to date no more often.
const USAGE_EVERY: Duration = Duration::from_secs(600);

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
        if resource.thing.is_none() {
            orphan::succeed(self, None, declared.adopt, context).await?;
        }
        let is_new = match context.store.declare_tenant(context.epoch, uid(self), declared, now).await? {
            Ok(declared) => declared != Declared::Kept,
            Err(refused) => {
                let reason = match refused {
                    NotDeclared::NotAdoptable => Reason::TenantNotAdoptable,
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
        let resource = match resource.thing {
            Some(_) => resource,
            None => noted(self, context).await?,
        };
        let Some(id) = resource.thing else { return Err(Failure::Unsettled) };
        let standing = standing(self, id, context).await?;
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
fn declared(object: &Tenant) -> Result<DeclaredTenant<'_>, uuid::Error> {
    let (spec, limits) = (&object.spec, &object.spec.limits);
    let adopt = object.annotations().get(annotation::ADOPT_TENANT);
    Ok(DeclaredTenant {
        name: object.metadata.name.as_deref().unwrap_or_default(),
        adopt: adopt.map(|id| id.parse()).transpose()?,
        suspended: spec.suspended,
        retention: i16::try_from(spec.retention_hours)
            .ok()
            .and_then(|hours| RetentionClass::try_from(hours).ok())
            .unwrap_or(RetentionClass::PRO),
        mailboxes: limits.mailboxes,
        domains: limits.custom_domains,
        webhooks: limits.webhooks,
        tokens: limits.tokens,
        mailbox_bytes: limits.mailbox_bytes,
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
async fn standing(object: &Tenant, id: Uuid, context: &Context) -> Result<Standing<TenantStatus>, Failure> {
    let former = object.status.as_ref().and_then(|status| status.usage);
    let mut status =
        TenantStatus { tenant_id: Some(id.to_string()), usage: former, ..TenantStatus::default() };
    let Some(tenant) = context.store.find_tenant_by_id(id, context.clock.now()).await? else {
        return Err(Failure::Unsettled);
    };
    if former.is_none() || context.usage.is_due(uid(object)) {
        status.usage = Some(TenantUsage {
            mailboxes: tenant.mailboxes.used,
            custom_domains: tenant.domains.used,
            webhooks: tenant.webhooks.used,
            tokens: tenant.tokens.used,
        });
    }
    let is_over = |share: Share| share.used > i64::from(share.limit);
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

/// Says when something is due again, by uid.
#[derive(Debug, Default)]
pub(crate) struct Pace(Mutex<HashMap<Uuid, Instant>>);

impl Pace {
    /// Whether it was not so within [`USAGE_EVERY`]; then it is noted that it is so now.
    fn is_due(&self, uid: Uuid) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if last.get(&uid).is_some_and(|at| now.duration_since(*at) < USAGE_EVERY) {
            return false;
        }
        last.insert(uid, now);
        true
    }
}
