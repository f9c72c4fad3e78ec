//! From every observed state, with steps repeated, the plan ends with a status that fits.

use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use tempmail_crds::{TenantRef, WebhookSpec};

use super::*;
use crate::reconcile::driver::STEP_LIMIT;
use crate::reconcile::secret::example::is_writable;
use crate::reconcile::vanished::example_predecessor;
use crate::status::Reason;

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

fn any_webhook() -> impl Strategy<Value = ManagedWebhook> {
    any::<[bool; 3]>().prop_map(|[active, disabled, has_other_url]| ManagedWebhook {
        id: Uuid::from_u128(9),
        tenant: Uuid::from_u128(1),
        url: if has_other_url { "https://former.example.com/" } else { URL }.to_owned(),
        secret: Vec::new(),
        active,
        disabled,
    })
}

fn any_observed() -> impl Strategy<Value = ObservedWebhook> {
    let grant = prop_oneof![
        4 => Just(Grant::Granted(Uuid::from_u128(1))),
        1 => Just(Grant::TenantNotReady),
        1 => Just(Grant::Replaced(Uuid::from_u128(2))),
        1 => Just(Grant::NotGranted { progress: Progress::Stalled, former: None }),
    ];
    let secret = select(secret::example::all_found());
    let url = prop_oneof![5 => Just(URL), 1 => Just("https://1.2.3.4/")];
    let predecessor = option::weighted(0.3, Just(example_predecessor()));
    (grant, option::of(any_webhook()), predecessor, secret, url, any::<[bool; 3]>()).prop_map(
        |(grant, webhook, predecessor, secret, url, [rotate, reenable, is_current])| ObservedWebhook {
            grant,
            url: WebhookUrl::parse(url, &[]),
            secret_is_current: is_current && webhook.is_some() && matches!(secret, FoundSecret::Owned(_)),
            webhook,
            predecessor,
            secret,
            rotate_requested: rotate.then(|| "new".to_owned()),
            reenable_requested: reenable.then(|| "new".to_owned()),
            rotate_handled: None,
            reenable_handled: None,
        },
    )
}

fn carry_out(step: &WebhookStep, observed: &mut ObservedWebhook) {
    let row = &mut observed.webhook;
    match step {
        WebhookStep::Delete => *row = None,
        WebhookStep::ReleasePredecessor => observed.predecessor = None,
        WebhookStep::Declare { tenant, url } => {
            *row = Some(ManagedWebhook {
                id: Uuid::from_u128(10),
                tenant: *tenant,
                url: url.clone(),
                secret: Vec::new(),
                active: false,
                disabled: false,
            });
            observed.secret_is_current = false;
            observed.rotate_requested = None;
            observed.reenable_requested = None;
        }
        WebhookStep::RecordReenable(_) => observed.reenable_requested = None,
        WebhookStep::SetUrl(url) => row.as_mut().unwrap().url = url.clone(),
        WebhookStep::Rotate { .. } => {
            row.as_mut().unwrap().active = false;
            observed.secret_is_current = false;
            observed.rotate_requested = None;
        }
        WebhookStep::WriteSecret => {
            observed.secret = FoundSecret::Owned(Box::default());
            observed.secret_is_current = true;
        }
        WebhookStep::Activate(_) => row.as_mut().unwrap().active = true,
    }
}

/// What must hold before a step.
fn is_safe(step: &WebhookStep, observed: &ObservedWebhook) -> bool {
    match step {
        WebhookStep::Declare { .. } => {
            is_writable(&observed.secret) && (observed.webhook.is_some() || observed.predecessor.is_none())
        }
        WebhookStep::WriteSecret | WebhookStep::Rotate { .. } => is_writable(&observed.secret),
        WebhookStep::Activate(id) => {
            observed.secret_is_current && observed.webhook.as_ref().is_some_and(|webhook| webhook.id == *id)
        }
        WebhookStep::Delete
        | WebhookStep::ReleasePredecessor
        | WebhookStep::RecordReenable(_)
        | WebhookStep::SetUrl(_) => true,
    }
}

proptest! {
    #[test]
    fn converges_from_every_state_with_repeated_steps(
        mut observed in any_observed(),
        repeats in proptest::collection::vec(any::<bool>(), STEP_LIMIT),
    ) {
        let object = object();
        let mut steps = 0;
        let update = loop {
            let step = match plan(&object, &observed) {
                Plan::Done(update) => break update,
                Plan::Step(step) => step,
            };
            prop_assert!(is_safe(&step, &observed), "{step:?}: {observed:?}");
            carry_out(&step, &mut observed);
            if repeats[steps] {
                carry_out(&step, &mut observed);
            }
            steps += 1;
            prop_assert!(steps < STEP_LIMIT, "{observed:?}");
        };
        let reason = update.conditions[0].reason;
        match &observed.webhook {
            Some(webhook) if reason == Reason::Ready => {
                prop_assert!(webhook.active && !webhook.disabled && observed.secret_is_current);
                prop_assert!(observed.rotate_requested.is_none() && observed.reenable_requested.is_none());
                prop_assert_eq!(observed.grant, Grant::Granted(webhook.tenant));
                prop_assert_eq!(&webhook.url, URL);
            }
            Some(_) => prop_assert!(
                matches!(
                    reason,
                    Reason::AutoDisabled | Reason::SecretConflict | Reason::InvalidSpec | Reason::SecretUnreadable
                ) && matches!(observed.grant, Grant::Granted(_))
            ),
            None => prop_assert!(reason != Reason::Ready && reason != Reason::AutoDisabled),
        }
        let delivering =
            update.conditions.iter().find(|condition| condition.kind == ConditionType::Delivering);
        prop_assert_eq!(
            delivering.map(|condition| condition.status == ConditionStatus::True),
            Some(observed.webhook.as_ref().is_some_and(|webhook| webhook.active && !webhook.disabled))
        );
    }
}
