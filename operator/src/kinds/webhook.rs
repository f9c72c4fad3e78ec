//! Webhooks. A webhook is declared inactive with its sealed signing secret, the secret is written to the
//! Secret, and the webhook is activated. The operator can open the sealed secret, so a lost Secret is written
//! again with the same value.

mod plan;

use kube::ResourceExt as _;
use tempmail_crds::{Webhook, WebhookStatus, annotation};
use tempmail_model::id::new_id;
use tempmail_model::webhook::{WebhookSecret, WebhookUrl};
use tempmail_store::{LimitUsage, ManagedWebhook, NewWebhook, Resource, Tenant, WebhookDeclaration};
use uuid::Uuid;

use self::plan::{ObservedWebhook, WebhookStep, secret_name};
use crate::error::ReconcileError;
use crate::kind::{Kind, uid};
use crate::reconcile::context::Context;
use crate::reconcile::driver::{Plan, Reconcile, Release, ReleaseTerms};
use crate::reconcile::refusal::{Refusal, StepError};
use crate::reconcile::secret::FoundSecret;
use crate::reconcile::secret::Issued;
use crate::reconcile::vanished::{ensure_current, find_predecessor, publish_adopted, release_predecessor};
use crate::reconcile::{grant, secret};
use crate::status::{StatusUpdate, message};

/// Key of the signing secret in the Secret.
const KEY: &str = "secret";

impl Kind for Webhook {
    const PLURAL: &'static str = "webhooks";

    fn tenant_name(&self) -> Option<&str> {
        Some(&self.spec.tenant_ref.name)
    }

    fn usage(tenant: &Tenant) -> Option<LimitUsage> {
        Some(tenant.webhooks)
    }
}

impl Reconcile for Webhook {
    type Observed = ObservedWebhook;
    type Step = WebhookStep;

    async fn observe(
        &self,
        resource: Resource,
        _issued: &Issued,
        context: &Context,
    ) -> Result<ObservedWebhook, ReconcileError> {
        let webhook = context.store.find_managed_webhook(uid(self)).await?;
        let secret = secret::find(self, &secret_name(self), context).await?;
        let grant = grant::find(self, &resource, context).await?;
        let predecessor = match grant.tenant(self) {
            Ok(tenant) if webhook.is_none() => find_predecessor(self, Some(tenant), context).await?,
            _ => None,
        };
        let opened =
            webhook.as_ref().and_then(|webhook| context.sealer.open(webhook.id, &webhook.secret).ok());
        let requested = |annotation: &str, handled: &Option<String>| {
            let requested = self.annotations().get(annotation);
            requested.filter(|requested| handled.as_ref() != Some(requested)).cloned()
        };
        Ok(ObservedWebhook {
            grant,
            url: WebhookUrl::parse(&self.spec.url, &context.config.webhooks.allowed_networks),
            webhook,
            predecessor,
            secret_is_current: opened.is_some_and(|opened| secret.value(KEY) == Some(&opened)),
            secret,
            rotate_requested: requested(annotation::ROTATE, &resource.rotate_handled),
            reenable_requested: requested(annotation::REENABLE, &resource.reenable_handled),
            rotate_handled: resource.rotate_handled,
            reenable_handled: resource.reenable_handled,
        })
    }

    fn plan(&self, observed: &ObservedWebhook) -> Plan<WebhookStep, WebhookStatus> {
        plan::plan(self, observed)
    }

    async fn act(
        &self,
        step: WebhookStep,
        observed: &ObservedWebhook,
        _issued: &mut Issued,
        context: &Context,
    ) -> Result<(), StepError> {
        let (store, epoch, uid) = (&context.store, context.epoch, uid(self));
        match step {
            WebhookStep::Delete => store.remove_managed_webhook(epoch, uid).await?,
            WebhookStep::ReleasePredecessor => adopt_or_release(self, observed, context).await?,
            WebhookStep::Declare { tenant, url } => declare(self, tenant, &url, observed, context).await?,
            WebhookStep::RecordReenable(requested) => {
                store.record_reenable_handled(epoch, uid, &requested).await?;
            }
            WebhookStep::SetUrl(url) => store.set_webhook_url(epoch, uid, &url).await?,
            WebhookStep::Rotate { id, requested } => rotate(self, id, &requested, observed, context).await?,
            WebhookStep::WriteSecret => write_secret(self, observed, context).await?,
            WebhookStep::Activate(id) => store.activate_webhook(epoch, uid, id).await?,
        }
        Ok(())
    }

    fn refused(&self, observed: &ObservedWebhook, refusal: Refusal) -> StatusUpdate<WebhookStatus> {
        plan::refused(self, observed, &refusal)
    }

    async fn release(uid: Uuid, _terms: &ReleaseTerms, context: &Context) -> Result<Release, ReconcileError> {
        context.store.release_webhook(context.epoch, uid).await?;
        context.seen_secrets.forget(uid);
        Ok(Release::Released)
    }
}

/// Releases the webhook of the predecessor, or adopts it with another signing secret if its cluster is released.
async fn adopt_or_release(
    object: &Webhook,
    observed: &ObservedWebhook,
    context: &Context,
) -> Result<(), StepError> {
    let released = observed.predecessor.as_ref().filter(|former| former.cluster != context.cluster);
    let adopted = released.and_then(|former| Some((former, former.row_id?)));
    match adopted {
        Some((former, id)) => {
            ensure_current(object, context).await?;
            let sealed = generate(object, id, observed, context).await?;
            let (store, uid, now) = (&context.store, uid(object), context.clock.now());
            store.adopt_released_webhook(context.epoch, uid, former.identity.uid, &sealed, now).await?;
            // Another object may have been first.
            if store.find_managed_webhook(uid).await?.is_some() {
                publish_adopted(object, id, former.cluster, context).await;
            }
        }
        None => release_predecessor(object, observed.predecessor.as_ref(), None, context).await?,
    }
    Ok(())
}

/// Declares a webhook, inactive, in place of the former one.
async fn declare(
    object: &Webhook,
    tenant: Uuid,
    url: &str,
    observed: &ObservedWebhook,
    context: &Context,
) -> Result<(), StepError> {
    let now = context.clock.now();
    let id = new_id(now);
    let events: Vec<&str> = object.spec.events.iter().map(String::as_str).collect();
    let sealed = generate(object, id, observed, context).await?;
    let declaration = WebhookDeclaration {
        webhook: NewWebhook { id, tenant, url, events: &events, secret: &sealed },
        rotate_requested: observed.rotate_requested.as_deref(),
        reenable_requested: observed.reenable_requested.as_deref(),
    };
    context.store.declare_webhook(context.epoch, uid(object), declaration, now).await??;
    if observed.webhook.as_ref().is_some_and(|former| former.disabled) {
        context.events.publish(object, &message::webhook_reenabled(url)).await;
    }
    Ok(())
}

/// Replaces the signing secret; the webhook is inactive until the Secret has it.
async fn rotate(
    object: &Webhook,
    id: Uuid,
    requested: &str,
    observed: &ObservedWebhook,
    context: &Context,
) -> Result<(), StepError> {
    let sealed = generate(object, id, observed, context).await?;
    let now = context.clock.now();
    context.store.rotate_managed_webhook(context.epoch, uid(object), &sealed, requested, now).await?;
    Ok(())
}

/// A new signing secret, sealed for the webhook `id`, that the Secret can be written with.
async fn generate(
    object: &Webhook,
    id: Uuid,
    observed: &ObservedWebhook,
    context: &Context,
) -> Result<Vec<u8>, StepError> {
    let secret = WebhookSecret::generate().map_err(|_no_randomness| ReconcileError::Randomness)?;
    let replaces = observed.webhook.as_ref().is_some_and(|former| former.active);
    let (name, values) = (secret_name(object), [(KEY, secret.expose())]);
    secret::check(object, &name, &observed.secret, &values, replaces, context).await?;
    Ok(context.sealer.seal(id, secret.expose()))
}

/// Writes the row's signing secret.
async fn write_secret(
    object: &Webhook,
    observed: &ObservedWebhook,
    context: &Context,
) -> Result<(), StepError> {
    let webhook: &ManagedWebhook = observed.webhook.as_ref().ok_or(ReconcileError::Stale)?;
    let secret =
        context.sealer.open(webhook.id, &webhook.secret).map_err(|_wrong_key| ReconcileError::Sealed)?;
    let values = [(KEY, secret.as_str())];
    let name = secret_name(object);
    secret::write(object, &name, &observed.secret, &values, context).await?;
    let replaces = !webhook.active && matches!(observed.secret, FoundSecret::Owned(_));
    secret::publish_written(object, &name, replaces, context).await;
    Ok(())
}
