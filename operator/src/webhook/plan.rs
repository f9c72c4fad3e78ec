//! What is to be done for a webhook, and how it stands: decided without I/O.

use tempmail_crds::{Webhook, WebhookState, WebhookStatus};
use tempmail_model::webhook::{WebhookUrl, WebhookUrlError};
use tempmail_store::{DeclareError, ManagedWebhook};
use uuid::Uuid;

use super::secret_name;
use crate::secret::Refusal;
use crate::standing::{ConditionType, Outlook, Reason, Standing, Truth, Verdict};
use crate::tenancy::Tenancy;

/// What the Secret holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// The row's secret.
    Secret,
    /// Nothing, or something else; or there is no Secret.
    Nothing,
    /// It is somebody else's.
    Conflict,
}

/// All that decides about an object.
#[derive(Debug, Clone)]
pub(super) struct World {
    pub tenancy: Tenancy,
    /// Where events are to be sent, if they can be.
    pub url: Result<WebhookUrl, WebhookUrlError>,
    /// The object's row.
    pub webhook: Option<ManagedWebhook>,
    pub held: Held,
    /// A new secret that the object asks for, and that was not made yet.
    pub rotate: Option<String>,
    /// That a disabled one be made again, which was not done yet.
    pub reenable: Option<String>,
    /// What was carried out last.
    pub rotate_handled: Option<String>,
    pub reenable_handled: Option<String>,
}

/// What comes next.
#[derive(Debug)]
pub(super) enum Next<'a> {
    Step(Step<'a>),
    Done(Standing<WebhookStatus>),
}

/// What may be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// The object is not accepted any more: nothing is to be sent.
    Withdraw,
    /// There is no webhook yet, or a disabled one is to be made again.
    Declare { tenant: Uuid, url: &'a str },
    /// Only what is disabled is made again.
    DisregardReenable(&'a str),
    /// The object says another URL.
    SetUrl(&'a str),
    /// Somebody asked for a new secret.
    Rotate { webhook: Uuid, asked: &'a str },
    /// The Secret does not hold the row's secret.
    WriteSecret(&'a ManagedWebhook),
    /// Its owner has the secret.
    Activate(Uuid),
}

/// Decides what comes next.
pub(super) fn plan<'a>(object: &Webhook, world: &'a World) -> Next<'a> {
    let tenant = match world.tenancy.permitted() {
        Ok(tenant) => tenant,
        Err(_) if world.webhook.is_some() => return Next::Step(Step::Withdraw),
        Err((reason, outlook)) => {
            return Next::Done(not_accepted(object, world, reason, outlook));
        }
    };
    let url = match &world.url {
        Ok(url) => url.as_str(),
        Err(error) => {
            let standing = not_accepted(object, world, Reason::InvalidSpec, Outlook::Stuck);
            return Next::Done(standing.explained(error.to_string()));
        }
    };
    let webhook = world.webhook.as_ref().filter(|webhook| webhook.tenant == tenant);
    if webhook.is_some_and(|webhook| webhook.url != url) {
        return Next::Step(Step::SetUrl(url));
    }
    if world.held == Held::Conflict {
        return Next::Done(not_accepted(object, world, Reason::SecretConflict, Outlook::Stuck));
    }
    let Some(webhook) = webhook else { return Next::Step(Step::Declare { tenant, url }) };
    match &world.reenable {
        Some(_) if webhook.disabled => return Next::Step(Step::Declare { tenant, url }),
        Some(asked) => return Next::Step(Step::DisregardReenable(asked)),
        None => {}
    }
    if let Some(asked) = &world.rotate {
        return Next::Step(Step::Rotate { webhook: webhook.id, asked });
    }
    if world.held == Held::Nothing {
        return Next::Step(Step::WriteSecret(webhook));
    }
    if !webhook.active {
        return Next::Step(Step::Activate(webhook.id));
    }
    let standing = if webhook.disabled {
        Standing::not_ready(status(object, world), Reason::AutoDisabled, Outlook::Stuck)
    } else {
        Standing::ready(status(object, world))
    };
    Next::Done(standing.with(delivering(world, Reason::AutoDisabled)))
}

/// How an object stands that can have no webhook.
pub(super) fn refused(object: &Webhook, world: &World, refused: DeclareError) -> Standing<WebhookStatus> {
    let reason = match refused {
        DeclareError::TenantDisabled => Reason::TenantSuspended,
        _ => Reason::QuotaExceeded,
    };
    not_accepted(object, world, reason, Outlook::Stuck)
}

/// How an object stands whose Secret can't be written.
pub(super) fn unwritten(object: &Webhook, world: &World, refusal: Refusal) -> Standing<WebhookStatus> {
    let delivering = delivering(world, refusal.reason());
    refusal.standing(status(object, world)).with(delivering)
}

fn not_accepted(
    object: &Webhook,
    world: &World,
    reason: Reason,
    outlook: Outlook,
) -> Standing<WebhookStatus> {
    Standing::refused(status(object, world), reason, outlook).with(delivering(world, reason))
}

/// Whether events are sent; `otherwise` is why not where the row does not say.
fn delivering(world: &World, otherwise: Reason) -> Verdict {
    let (truth, reason) = match &world.webhook {
        Some(webhook) if webhook.disabled => (Truth::False, Reason::AutoDisabled),
        Some(webhook) if webhook.active => (Truth::True, Reason::Delivering),
        _ => (Truth::False, otherwise),
    };
    Verdict::new(ConditionType::Delivering, truth, reason)
}

/// The status, its conditions aside.
fn status(object: &Webhook, world: &World) -> WebhookStatus {
    let webhook = world.webhook.as_ref();
    let state = |disabled| if disabled { WebhookState::Disabled } else { WebhookState::Active };
    WebhookStatus {
        webhook_id: webhook.map(|webhook| webhook.id.to_string()),
        state: webhook.filter(|webhook| webhook.active).map(|webhook| state(webhook.disabled)),
        secret_name: webhook.filter(|webhook| webhook.active).map(|_| secret_name(object)),
        last_handled_rotate_at: world.rotate_handled.clone(),
        last_handled_reenable_at: world.reenable_handled.clone(),
        ..WebhookStatus::default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::option;
    use proptest::prelude::*;
    use tempmail_crds::{TenantRef, WebhookSpec};

    use super::*;

    const URL: &str = "https://hooks.example.com/";

    fn object() -> Webhook {
        let spec = WebhookSpec {
            tenant_ref: TenantRef { name: "acme".to_owned() },
            url: URL.to_owned(),
            events: vec!["email.received".to_owned()],
            secret: None,
        };
        Webhook::new("hook", spec)
    }

    fn webhook() -> impl Strategy<Value = ManagedWebhook> {
        (1..3_u128, any::<[bool; 3]>()).prop_map(|(tenant, [active, disabled, moved])| ManagedWebhook {
            id: Uuid::from_u128(9),
            tenant: Uuid::from_u128(tenant),
            url: if moved { "https://former.example.com/" } else { URL }.to_owned(),
            secret: Vec::new(),
            active,
            disabled,
        })
    }

    fn world() -> impl Strategy<Value = World> {
        let tenancy = prop_oneof![
            4 => Just(Tenancy::Permitted(Uuid::from_u128(1))),
            1 => Just(Tenancy::NotReady),
            1 => Just(Tenancy::NotPermitted(Outlook::Stuck)),
        ];
        let held = prop_oneof![Just(Held::Secret), Just(Held::Nothing), Just(Held::Conflict)];
        let url = prop_oneof![5 => Just(URL), 1 => Just("https://1.2.3.4/")];
        (tenancy, option::of(webhook()), held, url, any::<[bool; 2]>()).prop_map(
            |(tenancy, webhook, held, url, [rotate, reenable])| World {
                tenancy,
                url: WebhookUrl::parse(url),
                held: if webhook.is_none() && held == Held::Secret { Held::Nothing } else { held },
                webhook,
                rotate: rotate.then(|| "new".to_owned()),
                reenable: reenable.then(|| "new".to_owned()),
                rotate_handled: None,
                reenable_handled: None,
            },
        )
    }

    fn carry_out(step: Step<'_>, mut world: World) -> World {
        let mut row = world.webhook.take();
        match step {
            Step::Withdraw => row = None,
            Step::Declare { tenant, url } => {
                row = Some(ManagedWebhook {
                    id: Uuid::from_u128(10),
                    tenant,
                    url: url.to_owned(),
                    secret: Vec::new(),
                    active: false,
                    disabled: false,
                });
                world.held = Held::Nothing;
                world.rotate = None;
                world.reenable = None;
            }
            Step::DisregardReenable(_) => world.reenable = None,
            Step::SetUrl(url) => row.as_mut().unwrap().url = url.to_owned(),
            Step::Rotate { .. } => {
                row.as_mut().unwrap().active = false;
                world.held = Held::Nothing;
                world.rotate = None;
            }
            Step::WriteSecret(_) => world.held = Held::Secret,
            Step::Activate(_) => row.as_mut().unwrap().active = true,
        }
        World { webhook: row, ..world }
    }

    proptest! {
        #[test]
        fn from_everywhere_it_comes_to_an_end_also_where_steps_are_repeated(
            start in world(),
            repeats in proptest::collection::vec(any::<bool>(), 10),
        ) {
            let object = object();
            let mut world = start;
            let mut steps = 0;
            let standing = loop {
                let before = world.clone();
                match plan(&object, &before) {
                    Next::Done(standing) => break standing,
                    Next::Step(step) => {
                        let writes = matches!(
                            step,
                            Step::Declare { .. } | Step::WriteSecret(_) | Step::Activate(_) | Step::Rotate { .. }
                        );
                        prop_assert!(!writes || before.held != Held::Conflict, "{before:?}");
                        if let Step::Activate(_) = step {
                            prop_assert_eq!(before.held, Held::Secret);
                        }
                        world = carry_out(step, world);
                        if repeats[steps] {
                            world = carry_out(step, world);
                        }
                        steps += 1;
                        prop_assert!(steps <= 6, "{world:?}");
                    }
                }
            };
            let reason = standing.verdicts[0].reason;
            match &world.webhook {
                Some(webhook) if reason == Reason::Ready => {
                    prop_assert!(webhook.active && !webhook.disabled && world.held == Held::Secret);
                    prop_assert!(world.rotate.is_none() && world.reenable.is_none());
                    prop_assert_eq!(world.tenancy, Tenancy::Permitted(webhook.tenant));
                    prop_assert_eq!(&webhook.url, URL);
                }
                Some(_) => prop_assert!(
                    matches!(reason, Reason::AutoDisabled | Reason::SecretConflict | Reason::InvalidSpec)
                        && matches!(world.tenancy, Tenancy::Permitted(_))
                ),
                None => prop_assert!(reason != Reason::Ready && reason != Reason::AutoDisabled),
            }
            let delivering = standing.verdicts.iter().find(|one| one.kind == ConditionType::Delivering);
            prop_assert_eq!(
                delivering.map(|one| one.truth == Truth::True),
                Some(world.webhook.as_ref().is_some_and(|webhook| webhook.active && !webhook.disabled))
            );
        }
    }
}
