//! Mailboxes of tenants at fixed addresses. A password is declared with its hash, which deactivates the
//! mailbox, then written to the Secret, then activated. It is stored nowhere but in the Secret, so a password
//! that was lost in between is replaced by a new one.

mod plan;

use kube::ResourceExt as _;
use tempmail_crds::{AdoptionPolicy, DeletionPolicy, Mailbox, MailboxStatus, annotation};
use tempmail_model::address::MailboxAddress;
use tempmail_store::{DeclareOutcome, LimitUsage, MailboxDeclaration, ManagedMailbox, Resource, Tenant};
use uuid::Uuid;

use self::plan::{MailboxStep, ObservedMailbox, secret_name};
use crate::error::ReconcileError;
use crate::kind::{Kind, uid};
use crate::password;
use crate::reconcile::context::Context;
use crate::reconcile::driver::{Plan, Reconcile, Release, ReleaseTerms};
use crate::reconcile::grant::Grant;
use crate::reconcile::refusal::{Refusal, StepError};
use crate::reconcile::secret::FoundSecret;
use crate::reconcile::secret::Issued;
use crate::reconcile::vanished::{find_predecessor, release_predecessor};
use crate::reconcile::{grant, secret};
use crate::status::{StatusUpdate, message};

/// Keys of the Secret.
const ADDRESS: &str = "address";
const PASSWORD: &str = "password";

impl Kind for Mailbox {
    const PLURAL: &'static str = "mailboxes";

    fn is_retained(&self) -> bool {
        self.spec.deletion_policy == DeletionPolicy::Retain
    }

    fn tenant_name(&self) -> Option<&str> {
        Some(&self.spec.tenant_ref.name)
    }

    fn declared(&self) -> Option<&str> {
        Some(&self.spec.address)
    }

    fn domain_name(&self) -> Option<&str> {
        self.spec.address.split_once('@').map(|(_, domain)| domain)
    }

    fn usage(tenant: &Tenant) -> Option<LimitUsage> {
        Some(tenant.mailboxes)
    }
}

impl Reconcile for Mailbox {
    type Observed = ObservedMailbox;
    type Step = MailboxStep;

    async fn observe(
        &self,
        resource: Resource,
        issued: &Issued,
        context: &Context,
    ) -> Result<ObservedMailbox, ReconcileError> {
        let grant = grant::find(self, &resource, context).await?;
        let mailbox = context.store.find_managed_mailbox(uid(self)).await?;
        let address = MailboxAddress::parse(&self.spec.address).ok();
        let domain = match &address {
            Some(address) => observe_domain(address, grant, context).await?,
            None => AddressDomain::default(),
        };
        let (predecessor, secret) = match grant.tenant(self) {
            Ok(tenant) => (
                match mailbox {
                    None => find_predecessor(self, Some(tenant), context).await?,
                    Some(_) => None,
                },
                secret::find(self, &secret_name(self), context).await?,
            ),
            Err(_) => (None, FoundSecret::Absent),
        };
        let password = mailbox.as_ref().and_then(|mailbox| issued.value(mailbox.password_hash.as_bytes()));
        let requested = self.annotations().get(annotation::ROTATE);
        Ok(ObservedMailbox {
            grant,
            address,
            is_served: domain.is_served,
            is_reserved: domain.is_reserved,
            secret_is_current: match &mailbox {
                Some(mailbox) => holds(self, &secret, mailbox, password, context).await?,
                None => false,
            },
            is_issued: password.is_some(),
            mailbox,
            predecessor,
            secret,
            rotate_requested: requested.is_some() && requested != resource.rotate_handled.as_ref(),
            rotate_handled: resource.rotate_handled,
        })
    }

    fn plan(&self, observed: &ObservedMailbox) -> Plan<MailboxStep, MailboxStatus> {
        plan::plan(self, observed)
    }

    async fn act(
        &self,
        step: MailboxStep,
        observed: &ObservedMailbox,
        issued: &mut Issued,
        context: &Context,
    ) -> Result<(), StepError> {
        let (store, epoch, uid) = (&context.store, context.epoch, uid(self));
        match step {
            MailboxStep::Deactivate => store.deactivate_mailbox(epoch, uid).await?,
            MailboxStep::ReleasePredecessor => {
                release_predecessor(self, observed.predecessor.as_ref(), None, context).await?;
            }
            MailboxStep::Declare { tenant, address } => {
                declare(self, tenant, &address, observed, issued, context).await?;
            }
            MailboxStep::WriteSecret => write_secret(self, observed, issued, context).await?,
            MailboxStep::Activate { password_hash } => {
                store.activate_mailbox(epoch, uid, &password_hash).await?;
            }
        }
        Ok(())
    }

    fn refused(&self, observed: &ObservedMailbox, refusal: Refusal) -> StatusUpdate<MailboxStatus> {
        plan::refused(self, observed, &refusal)
    }

    async fn release(uid: Uuid, terms: &ReleaseTerms, context: &Context) -> Result<Release, ReconcileError> {
        let (now, hold_days) = (context.clock.now(), context.config.limits.address_hold_days);
        let (retained, granting) = (terms.retained, &terms.granting);
        context.store.release_mailbox(context.epoch, uid, retained, granting, now, hold_days).await?;
        context.password_checks.remove(uid);
        context.seen_secrets.forget(uid);
        Ok(Release::Released)
    }
}

/// The domain of an address, for a tenant.
#[derive(Debug, Clone, Copy, Default)]
struct AddressDomain {
    is_served: bool,
    is_reserved: bool,
}

async fn observe_domain(
    address: &MailboxAddress,
    grant: Grant,
    context: &Context,
) -> Result<AddressDomain, ReconcileError> {
    let domain = context.store.find_serving_domain(address.domain()).await?;
    Ok(match domain.map(|domain| domain.tenant) {
        None => AddressDomain::default(),
        Some(Some(owner)) => AddressDomain { is_served: grant == Grant::Granted(owner), is_reserved: false },
        Some(None) => {
            let reserved = context.config.reserved_local_parts();
            let is_reserved = reserved.reservation_of(address.local_part()).is_reserved();
            AddressDomain { is_served: true, is_reserved }
        }
    })
}

/// Whether the Secret holds the address and the password of the mailbox. A password that this reconciliation
/// issued is compared, and need not be hashed.
async fn holds(
    object: &Mailbox,
    found: &FoundSecret,
    mailbox: &ManagedMailbox,
    issued: Option<&str>,
    context: &Context,
) -> Result<bool, ReconcileError> {
    let (FoundSecret::Owned(secret), Some(password)) = (found, found.value(PASSWORD)) else {
        return Ok(false);
    };
    if found.value(ADDRESS) != Some(&object.spec.address) {
        return Ok(false);
    }
    let (uid, checks) = (uid(object), &context.password_checks);
    match issued {
        Some(issued) if issued == password => {
            checks.record_match(uid, secret, &mailbox.password_hash);
            Ok(true)
        }
        Some(_) => Ok(false),
        None => checks.matches(uid, secret, password, &mailbox.password_hash).await,
    }
}

/// Declares a new password, which deactivates the mailbox; creates the mailbox first if there is none.
async fn declare(
    object: &Mailbox,
    tenant: Uuid,
    address: &MailboxAddress,
    observed: &ObservedMailbox,
    issued: &mut Issued,
    context: &Context,
) -> Result<(), StepError> {
    let password = password::generate()?;
    let replaces = observed.mailbox.as_ref().is_some_and(|mailbox| mailbox.active);
    let (name, values) = (secret_name(object), values(object, &password));
    secret::check(object, &name, &observed.secret, &values, replaces, context).await?;
    let password_hash = password::hash(&password).await?;
    let declaration = MailboxDeclaration {
        tenant,
        domain: address.domain(),
        local_part: address.local_part(),
        password_hash: &password_hash,
        adopt: object.spec.adoption_policy == AdoptionPolicy::IfUnowned,
        rotate_requested: object.annotations().get(annotation::ROTATE).map(String::as_str),
    };
    let now = context.clock.now();
    let outcome = context.store.declare_mailbox(context.epoch, uid(object), declaration, now).await??;
    issued.set(&password, password_hash.as_bytes(), replaces);
    if outcome == DeclareOutcome::Adopted {
        context.events.publish(object, &message::adopted("the mailbox at spec.address")).await;
    }
    Ok(())
}

/// Writes the password that this reconciliation issued.
async fn write_secret(
    object: &Mailbox,
    observed: &ObservedMailbox,
    issued: &Issued,
    context: &Context,
) -> Result<(), StepError> {
    let mailbox = observed.mailbox.as_ref();
    let password = mailbox.and_then(|mailbox| issued.value(mailbox.password_hash.as_bytes()));
    let values = values(object, password.ok_or(ReconcileError::Stale)?);
    let name = secret_name(object);
    secret::write(object, &name, &observed.secret, &values, context).await?;
    secret::publish_written(object, &name, issued.replaces(), context).await;
    Ok(())
}

fn values<'a>(object: &'a Mailbox, password: &'a str) -> [(&'static str, &'a str); 2] {
    [(ADDRESS, &object.spec.address), (PASSWORD, password)]
}
