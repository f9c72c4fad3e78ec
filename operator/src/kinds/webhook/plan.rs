//! The plan of a Webhook.

use tempmail_crds::{Webhook, WebhookState, WebhookStatus};
use tempmail_model::webhook::{WebhookUrl, WebhookUrlError};
use tempmail_store::{ManagedWebhook, Resource};
use uuid::Uuid;

use crate::kind::Kind as _;
use crate::reconcile::driver::Plan;
use crate::reconcile::grant::Grant;
use crate::reconcile::refusal::Refusal;
use crate::reconcile::secret::{self, FoundSecret};
use crate::status::{
    ConditionStatus, ConditionType, ConditionUpdate, Message, Progress, StatusUpdate, message,
};

/// What the plan of a Webhook depends on.
#[derive(Debug, Clone)]
pub(crate) struct ObservedWebhook {
    pub grant: Grant,
    /// The declared URL, if it is valid.
    pub url: Result<WebhookUrl, WebhookUrlError>,
    /// The object's row.
    pub webhook: Option<ManagedWebhook>,
    pub predecessor: Option<Resource>,
    pub secret: FoundSecret,
    /// Whether the Secret holds the row's signing secret.
    pub secret_is_current: bool,
    /// The annotation's value that requests a new signing secret, unless it was handled.
    pub rotate_requested: Option<String>,
    /// The annotation's value that requests to replace a disabled webhook, unless it was handled.
    pub reenable_requested: Option<String>,
    /// The annotations' values that were handled last.
    pub rotate_handled: Option<String>,
    pub reenable_handled: Option<String>,
}

/// A step for a Webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WebhookStep {
    /// Delete the webhook, since the object is no longer accepted.
    Delete,
    /// Release the row of the predecessor.
    ReleasePredecessor,
    /// Create the webhook, inactive, or replace a disabled one.
    Declare { tenant: Uuid, url: String },
    /// Record a request to replace the webhook as handled, since the webhook is not disabled.
    RecordReenable(String),
    /// Change the URL.
    SetUrl(String),
    /// Replace the signing secret, as requested.
    Rotate { id: Uuid, requested: String },
    /// Write the row's signing secret to the Secret.
    WriteSecret,
    /// Activate the webhook with this id, whose signing secret the Secret holds.
    Activate(Uuid),
}

/// Decides on the next step.
pub(super) fn plan(object: &Webhook, observed: &ObservedWebhook) -> Plan<WebhookStep, WebhookStatus> {
    let not_accepted = |message, progress| Plan::Done(not_accepted(object, observed, message, progress));
    let tenant = match observed.grant.tenant(object) {
        Ok(tenant) => tenant,
        Err(_) if observed.webhook.is_some() => return Plan::Step(WebhookStep::Delete),
        Err((message, progress)) => return not_accepted(message, progress),
    };
    let url = match &observed.url {
        Ok(url) => url.as_str(),
        Err(error) => return not_accepted(message::url_invalid(*error), Progress::Stalled),
    };
    let webhook = observed.webhook.as_ref();
    if webhook.is_some_and(|webhook| webhook.url != url) {
        return Plan::Step(WebhookStep::SetUrl(url.to_owned()));
    }
    if observed.secret == FoundSecret::Foreign {
        return not_accepted(message::secret_conflict(&secret_name(object)), Progress::Stalled);
    }
    if let FoundSecret::Unreadable(error) = &observed.secret {
        return Plan::Done(refused(object, observed, &Refusal::Secret(error.clone())));
    }
    match webhook {
        None if observed.predecessor.is_some() => Plan::Step(WebhookStep::ReleasePredecessor),
        None => Plan::Step(WebhookStep::Declare { tenant, url: url.to_owned() }),
        Some(webhook) => plan_webhook(object, observed, webhook),
    }
}

/// Decides on the next step for a webhook that exists.
fn plan_webhook(
    object: &Webhook,
    observed: &ObservedWebhook,
    webhook: &ManagedWebhook,
) -> Plan<WebhookStep, WebhookStatus> {
    if let Some(requested) = &observed.reenable_requested {
        return Plan::Step(if webhook.disabled {
            WebhookStep::Declare { tenant: webhook.tenant, url: webhook.url.clone() }
        } else {
            WebhookStep::RecordReenable(requested.clone())
        });
    }
    if let Some(requested) = &observed.rotate_requested {
        return Plan::Step(WebhookStep::Rotate { id: webhook.id, requested: requested.clone() });
    }
    if !observed.secret_is_current {
        return Plan::Step(WebhookStep::WriteSecret);
    }
    if !webhook.active {
        return Plan::Step(WebhookStep::Activate(webhook.id));
    }
    let status = status(object, observed);
    let disabled = message::auto_disabled(&webhook.url);
    let update = if webhook.disabled {
        StatusUpdate::not_ready(status, disabled.clone(), Progress::Stalled)
    } else {
        StatusUpdate::ready(status)
    };
    Plan::Done(update.with(delivering(observed, disabled)))
}

/// The status of an object whose step was refused.
pub(super) fn refused(
    object: &Webhook,
    observed: &ObservedWebhook,
    refusal: &Refusal,
) -> StatusUpdate<WebhookStatus> {
    let tenant = &object.spec.tenant_ref.name;
    let message = match refusal {
        Refusal::HeldByAnotherCluster(holder) => message::held_by_another_cluster(holder),
        Refusal::LimitReached(usage) => message::limit_reached(tenant, Webhook::PLURAL, *usage),
        Refusal::Row(_) | Refusal::Claimed(_) => message::tenant_suspended(tenant),
        Refusal::Secret(error) => {
            let secret = secret_name(object);
            let delivering = delivering(observed, error.message(&secret));
            return error.status_update(status(object, observed), &secret).with(delivering);
        }
    };
    not_accepted(object, observed, message, Progress::Stalled)
}

fn not_accepted(
    object: &Webhook,
    observed: &ObservedWebhook,
    message: Message,
    progress: Progress,
) -> StatusUpdate<WebhookStatus> {
    let delivering = delivering(observed, message.clone());
    StatusUpdate::not_accepted(status(object, observed), message, progress).with(delivering)
}

/// Whether events are sent. `otherwise` is why there is no webhook, or an inactive one.
fn delivering(observed: &ObservedWebhook, otherwise: Message) -> ConditionUpdate {
    let (status, message) = match &observed.webhook {
        Some(webhook) if webhook.disabled => (ConditionStatus::False, message::auto_disabled(&webhook.url)),
        Some(webhook) if webhook.active => (ConditionStatus::True, message::delivering(&webhook.url)),
        _ => (ConditionStatus::False, otherwise),
    };
    ConditionUpdate::new(ConditionType::Delivering, status, message)
}

/// The status without its conditions.
fn status(object: &Webhook, observed: &ObservedWebhook) -> WebhookStatus {
    let webhook = observed.webhook.as_ref();
    let active = webhook.filter(|webhook| webhook.active);
    let state = |disabled| if disabled { WebhookState::Disabled } else { WebhookState::Active };
    WebhookStatus {
        webhook_id: webhook.map(|webhook| webhook.id.to_string()),
        state: active.map(|webhook| state(webhook.disabled)),
        secret_name: active.map(|_| secret_name(object)),
        last_handled_rotate_at: observed.rotate_handled.clone(),
        last_handled_reenable_at: observed.reenable_handled.clone(),
        ..WebhookStatus::default()
    }
}

pub(super) fn secret_name(object: &Webhook) -> String {
    secret::name_of(object, object.spec.secret.as_ref(), "webhook")
}

#[cfg(test)]
mod tests;
