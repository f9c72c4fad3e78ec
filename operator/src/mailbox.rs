//! Mailboxes of tenants at fixed addresses, with their passwords in Secrets.

mod password;
mod plan;

use kube::ResourceExt as _;
use tempmail_crds::{AdoptionPolicy, DeletionPolicy, Mailbox, MailboxStatus, annotation};
use tempmail_model::address::{MailboxAddress, Reservation, ReservedLocalParts};
use tempmail_store::{MailboxDeclaration, ManagedMailbox};

pub(crate) use self::password::Fits;
use self::plan::{Next, Step, World, plan};
use crate::context::Context;
use crate::controller::uid;
use crate::failure::Failure;
use crate::identity::noted;
use crate::kind::{Kind, kind};
use crate::orphan;
use crate::secret::{self, Found, Obstacle};
use crate::standing::Standing;
use crate::tenancy::{self, Tenancy};

/// Looks and steps in one reconciliation at most.
const STEPS: usize = 4;
/// Keys of the Secret.
const ADDRESS: &str = "address";
const PASSWORD: &str = "password";

impl Kind for Mailbox {
    kind!(Mailbox, MailboxStatus, namespaced);

    fn is_retained(&self) -> bool {
        self.spec.deletion_policy == DeletionPolicy::Retain
    }

    fn tenant_name(&self) -> Option<&str> {
        Some(&self.spec.tenant_ref.name)
    }

    fn domain_name(&self) -> Option<&str> {
        self.spec.address.split_once('@').map(|(_, domain)| domain)
    }

    async fn make_true(&self, context: &Context) -> Result<Standing<MailboxStatus>, Failure> {
        let secret_name = secret_name(self);
        for _ in 0..STEPS {
            let world = observe(self, &secret_name, context).await?;
            match plan(&secret_name, &world) {
                Next::Done(standing) => return Ok(standing),
                Next::Step(step) => match act(self, step, &secret_name, context).await {
                    Ok(()) => {}
                    Err(Obstacle::Failure(failure)) => return Err(failure),
                    Err(Obstacle::Row(refused)) => return Ok(plan::refused(&world, refused)),
                    Err(Obstacle::Secret(refusal)) => {
                        let world = observe(self, &secret_name, context).await?;
                        return Ok(refusal.standing(plan::status(&secret_name, &world)));
                    }
                },
            }
        }
        Err(Failure::Unsettled)
    }
}

/// The Secret that the password is written to.
fn secret_name(object: &Mailbox) -> String {
    secret::name_of(object, object.spec.secret.as_ref(), "mailbox")
}

/// All that decides about an object.
async fn observe(object: &Mailbox, secret_name: &str, context: &Context) -> Result<World, Failure> {
    let resource = noted(object, context).await?;
    let tenancy = tenancy::resolve(object, context).await?;
    let mailbox = context.store.find_managed_mailbox(uid(object)).await?;
    let address = MailboxAddress::parse(&object.spec.address).ok();
    let service = match &address {
        Some(address) => service(address, tenancy, context).await?,
        None => Service::default(),
    };
    let secret = match tenancy {
        Tenancy::Permitted(_) => secret::find(object, secret_name, context).await?,
        _ => Found::Absent,
    };
    let is_told = is_told(object, &secret, mailbox.as_ref(), context).await?;
    let annotated = object.annotations().get(annotation::ROTATE).cloned();
    Ok(World {
        tenancy,
        address,
        serves: service.serves,
        is_reserved: service.is_reserved,
        mailbox,
        secret,
        is_told,
        asks: annotated.is_some() && annotated != resource.rotate_handled,
        handled: resource.rotate_handled,
    })
}

/// What the domain of an address is to a tenant.
#[derive(Debug, Clone, Copy, Default)]
struct Service {
    serves: bool,
    is_reserved: bool,
}

async fn service(address: &MailboxAddress, tenancy: Tenancy, context: &Context) -> Result<Service, Failure> {
    let domain = context.store.find_serving_domain(address.domain()).await?;
    Ok(match domain.map(|domain| domain.tenant) {
        None => Service::default(),
        Some(Some(owner)) => Service { serves: tenancy == Tenancy::Permitted(owner), is_reserved: false },
        Some(None) => {
            let reserved = ReservedLocalParts::new(&context.config.addresses.reserved);
            Service {
                serves: true,
                is_reserved: reserved.reservation_of(address.local_part()) != Reservation::None,
            }
        }
    })
}

/// Whether the Secret has what signs in to the mailbox.
async fn is_told(
    object: &Mailbox,
    found: &Found,
    mailbox: Option<&ManagedMailbox>,
    context: &Context,
) -> Result<bool, Failure> {
    match (found, found.value(PASSWORD), mailbox) {
        (Found::Own(secret), Some(told), Some(mailbox))
            if found.value(ADDRESS) == Some(&object.spec.address) =>
        {
            context.fits.matches(uid(object), secret, told, &mailbox.password_hash).await
        }
        _ => Ok(false),
    }
}

/// Carries out one step; says what is in its way.
async fn act(object: &Mailbox, step: Step<'_>, secret_name: &str, context: &Context) -> Result<(), Obstacle> {
    let (store, epoch, uid, now) = (&context.store, context.epoch, uid(object), context.clock.now());
    match step {
        Step::Withhold => store.deactivate_mailbox(epoch, uid).await?,
        // Who ends in between leaves a mailbox that is inactive, so the step is done again.
        Step::NewPassword { tenant, address, secret, works } => {
            orphan::succeed(object, Some(tenant), None, context).await?;
            let password = password::generate()?;
            let values = [(ADDRESS, object.spec.address.as_str()), (PASSWORD, &password)];
            secret::check(object, secret_name, secret, &values, works, context).await?;
            let hash = password::hash(&password).await?;
            let mailbox = MailboxDeclaration {
                tenant,
                domain: address.domain(),
                local_part: address.local_part(),
                password_hash: &hash,
                adopt: object.spec.adoption_policy == AdoptionPolicy::IfUnowned,
                rotate_requested: object.annotations().get(annotation::ROTATE).map(String::as_str),
            };
            store.declare_mailbox(epoch, uid, mailbox, now).await??;
            secret::write(object, secret_name, secret, &values, context).await?;
            store.activate_mailbox(epoch, uid, &hash).await?;
        }
    }
    Ok(())
}
