//! Webhooks: the row, inactive, with the sealed secret; the Secret; the row active. The secret can be
//! opened here, so a Secret that is lost is written again with the same one.

mod plan;

use kube::ResourceExt as _;
use tempmail_crds::{Webhook, WebhookStatus, annotation};
use tempmail_model::id::new_id;
use tempmail_model::webhook::{WebhookSecret, WebhookUrl};
use tempmail_store::{NewWebhook, WebhookDeclaration};

use self::plan::{Held, Next, Step, World, plan};
use crate::context::Context;
use crate::controller::uid;
use crate::failure::Failure;
use crate::identity::noted;
use crate::kind::{Kind, kind};
use crate::secret::{self, Found, Obstacle};
use crate::standing::{Reason, Standing};
use crate::{orphan, tenancy};

/// Looks and steps in one reconciliation at most.
const STEPS: usize = 10;
/// Key of the Secret.
const KEY: &str = "secret";

impl Kind for Webhook {
    kind!(Webhook, WebhookStatus, namespaced);

    fn is_retained(&self) -> bool {
        false
    }

    fn tenant_name(&self) -> Option<&str> {
        Some(&self.spec.tenant_ref.name)
    }

    async fn make_true(&self, context: &Context) -> Result<Standing<WebhookStatus>, Failure> {
        for _ in 0..STEPS {
            let (world, found) = observe(self, context).await?;
            match plan(self, &world) {
                Next::Done(standing) => return Ok(standing),
                Next::Step(step) => match act(self, step, &world, &found, context).await {
                    Ok(()) => {}
                    Err(Obstacle::Failure(failure)) => return Err(failure),
                    Err(Obstacle::Row(refused)) => return Ok(plan::refused(self, &world, refused)),
                    Err(Obstacle::Secret(refusal)) => {
                        let (world, _) = observe(self, context).await?;
                        return Ok(plan::unwritten(self, &world, refusal));
                    }
                },
            }
        }
        Err(Failure::Unsettled)
    }
}

/// All that decides about an object, and its Secret.
async fn observe(object: &Webhook, context: &Context) -> Result<(World, Found), Failure> {
    let resource = noted(object, context).await?;
    let webhook = context.store.find_managed_webhook(uid(object)).await?;
    let found = secret::find(object, &secret_name(object), context).await?;
    let secret = webhook.as_ref().and_then(|webhook| context.sealer.open(webhook.id, &webhook.secret).ok());
    let held = match (&found, secret) {
        (Found::Foreign, _) => Held::Conflict,
        (found, Some(secret)) if found.value(KEY) == Some(&secret) => Held::Secret,
        _ => Held::Nothing,
    };
    let asked = |annotation: &str, handled: &Option<String>| {
        object.annotations().get(annotation).filter(|asked| handled.as_ref() != Some(asked)).cloned()
    };
    let world = World {
        tenancy: tenancy::resolve(object, context).await?,
        url: WebhookUrl::parse(&object.spec.url),
        webhook,
        held,
        rotate: asked(annotation::ROTATE, &resource.rotate_handled),
        reenable: asked(annotation::REENABLE, &resource.reenable_handled),
        rotate_handled: resource.rotate_handled,
        reenable_handled: resource.reenable_handled,
    };
    Ok((world, found))
}

/// Carries out one step; says what is in its way.
async fn act(
    object: &Webhook,
    step: Step<'_>,
    world: &World,
    found: &Found,
    context: &Context,
) -> Result<(), Obstacle> {
    let (store, epoch, uid, now) = (&context.store, context.epoch, uid(object), context.clock.now());
    match step {
        Step::Withdraw => store.remove_managed_webhook(epoch, uid).await?,
        Step::Declare { tenant, url } => {
            orphan::succeed(object, Some(tenant), None, context).await?;
            let id = new_id(now);
            let events: Vec<&str> = object.spec.events.iter().map(String::as_str).collect();
            let secret = generated()?;
            check(object, world, found, &secret, context).await?;
            let secret = context.sealer.seal(id, secret.expose());
            let declaration = WebhookDeclaration {
                webhook: NewWebhook { id, tenant, url, events: &events, secret: &secret },
                rotate_requested: world.rotate.as_deref(),
                reenable_requested: world.reenable.as_deref(),
            };
            store.declare_webhook(epoch, uid, declaration, now).await??;
            if world.webhook.as_ref().is_some_and(|former| former.disabled) {
                context.tell(object, Reason::WebhookReenabled).await;
            }
        }
        Step::DisregardReenable(asked) => store.record_reenable_handled(epoch, uid, asked).await?,
        Step::SetUrl(url) => store.set_webhook_url(epoch, uid, url).await?,
        Step::Rotate { webhook, asked } => {
            let secret = generated()?;
            check(object, world, found, &secret, context).await?;
            let secret = context.sealer.seal(webhook, secret.expose());
            store.rotate_managed_webhook(epoch, uid, &secret, asked, now).await?;
        }
        Step::WriteSecret(webhook) => {
            let secret =
                context.sealer.open(webhook.id, &webhook.secret).map_err(|_closed| Failure::Sealed)?;
            let values = [(KEY, secret.as_str())];
            secret::write(object, &secret_name(object), found, &values, context).await?;
            let takes_its_place = !webhook.active && matches!(found, Found::Own(_));
            let reason = if takes_its_place { Reason::SecretRotated } else { Reason::SecretWritten };
            context.tell(object, reason).await;
        }
        Step::Activate(webhook) => store.activate_webhook(epoch, uid, webhook).await?,
    }
    Ok(())
}

/// Whether a new secret could be written in place of the one there is.
async fn check(
    object: &Webhook,
    world: &World,
    found: &Found,
    secret: &WebhookSecret,
    context: &Context,
) -> Result<(), Obstacle> {
    let works = world.webhook.as_ref().is_some_and(|former| former.active);
    secret::check(object, &secret_name(object), found, &[(KEY, secret.expose())], works, context).await
}

fn generated() -> Result<WebhookSecret, Failure> {
    WebhookSecret::generate().map_err(|_none| Failure::Randomness)
}

fn secret_name(object: &Webhook) -> String {
    secret::name_of(object, object.spec.secret.as_ref(), "webhook")
}
