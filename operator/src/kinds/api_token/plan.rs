//! The plan of an ApiToken.

use jiff::{SignedDuration, Timestamp};
use tempmail_crds::{ApiToken, ApiTokenStatus, OnSecretLoss};
use tempmail_store::{ManagedToken, Resource};
use uuid::Uuid;

use crate::kind::Kind as _;
use crate::reconcile::driver::Plan;
use crate::reconcile::grant::Grant;
use crate::reconcile::refusal::Refusal;
use crate::reconcile::secret::{self, FoundSecret};
use crate::status::{Message, Progress, StatusUpdate, message};

/// How long after its expiry a token is reconciled, so that it has expired by then.
const AFTER_EXPIRY: SignedDuration = SignedDuration::from_secs(1);

/// What the plan of an ApiToken depends on.
#[derive(Debug, Clone)]
pub(crate) struct ObservedToken {
    pub grant: Grant,
    /// The object's row.
    pub token: Option<ManagedToken>,
    pub predecessor: Option<Resource>,
    pub secret: FoundSecret,
    /// Whether the Secret holds the row's token.
    pub secret_is_current: bool,
    /// Whether this reconciliation issued the row's token, and so can write it to the Secret.
    pub is_issued: bool,
    /// The annotation's value that requests a new token, unless it was handled.
    pub rotate_requested: Option<String>,
    /// The annotation's value that was handled last.
    pub rotate_handled: Option<String>,
    pub now: Timestamp,
}

/// A step for an ApiToken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenStep {
    /// Revoke the token, since the object is no longer accepted.
    Revoke,
    /// Release the row of the predecessor.
    ReleasePredecessor,
    /// Change when the token expires.
    SetExpiry(Option<Timestamp>),
    /// Declare a new token, inactive; the former one ends.
    Declare { tenant: Uuid },
    /// Write the token that was just declared to the Secret.
    WriteSecret,
    /// Activate the token with this id, which the Secret holds.
    Activate(Uuid),
}

/// Decides on the next step.
pub(super) fn plan(object: &ApiToken, observed: &ObservedToken) -> Plan<TokenStep, ApiTokenStatus> {
    let not_accepted =
        |why, progress| Plan::Done(StatusUpdate::not_accepted(status(object, observed), why, progress));
    let tenant = match observed.grant.tenant(object) {
        Ok(tenant) => tenant,
        Err(_) if observed.token.is_some() => return Plan::Step(TokenStep::Revoke),
        Err((message, progress)) => return not_accepted(message, progress),
    };
    let token = observed.token.as_ref();
    let expires_at = expires_at(object);
    if token.is_some_and(|token| token.expires_at != expires_at) {
        return Plan::Step(TokenStep::SetExpiry(expires_at));
    }
    // No token is declared that would be refused at once, even if the row of the expired one is gone.
    if let Some(at) = expires_at.filter(|at| *at <= observed.now) {
        return not_ready(object, observed, message::token_expired(at));
    }
    if observed.secret == FoundSecret::Foreign {
        return not_accepted(message::secret_conflict(&secret_name(object)), Progress::Stalled);
    }
    if let FoundSecret::Unreadable(error) = &observed.secret {
        return Plan::Done(refused(object, observed, &Refusal::Secret(error.clone())));
    }
    match token {
        None if observed.predecessor.is_some() => Plan::Step(TokenStep::ReleasePredecessor),
        Some(token) if observed.rotate_requested.is_none() => plan_token(object, observed, token, tenant),
        _ => Plan::Step(TokenStep::Declare { tenant }),
    }
}

/// Decides on the next step for a token that is not to be rotated.
fn plan_token(
    object: &ApiToken,
    observed: &ObservedToken,
    token: &ManagedToken,
    tenant: Uuid,
) -> Plan<TokenStep, ApiTokenStatus> {
    match (token.active, observed.secret_is_current) {
        (false, true) => Plan::Step(TokenStep::Activate(token.id)),
        (false, false) if observed.is_issued => Plan::Step(TokenStep::WriteSecret),
        // The process that issued the token died before it wrote the Secret.
        (false, false) => Plan::Step(TokenStep::Declare { tenant }),
        (true, false) => match object.spec.on_secret_loss {
            OnSecretLoss::Rotate => Plan::Step(TokenStep::Declare { tenant }),
            OnSecretLoss::Stall => not_ready(object, observed, message::secret_lost(&secret_name(object))),
        },
        (true, true) => {
            let mut update = StatusUpdate::ready(status(object, observed));
            update.requeue_after = token
                .expires_at
                .and_then(|at| (at.duration_since(observed.now) + AFTER_EXPIRY).try_into().ok());
            Plan::Done(update)
        }
    }
}

fn not_ready(
    object: &ApiToken,
    observed: &ObservedToken,
    message: Message,
) -> Plan<TokenStep, ApiTokenStatus> {
    Plan::Done(StatusUpdate::not_ready(status(object, observed), message, Progress::Stalled))
}

/// The status of an object whose step was refused.
pub(super) fn refused(
    object: &ApiToken,
    observed: &ObservedToken,
    refusal: &Refusal,
) -> StatusUpdate<ApiTokenStatus> {
    let (status, tenant) = (status(object, observed), &object.spec.tenant_ref.name);
    let message = match refusal {
        Refusal::HeldByAnotherCluster(holder) => message::held_by_another_cluster(holder),
        Refusal::LimitReached(usage) => message::limit_reached(tenant, ApiToken::PLURAL, *usage),
        Refusal::Row(_) | Refusal::Claimed(_) => message::tenant_suspended(tenant),
        Refusal::Secret(error) => return error.status_update(status, &secret_name(object)),
    };
    StatusUpdate::not_accepted(status, message, Progress::Stalled)
}

/// The status without its conditions. It shows an active token only.
fn status(object: &ApiToken, observed: &ObservedToken) -> ApiTokenStatus {
    let token = observed.token.as_ref().filter(|token| token.active);
    ApiTokenStatus {
        token_id: token.map(|token| token.id.to_string()),
        hint: token.map(|token| token.hint.clone()),
        secret_name: token.map(|_| secret_name(object)),
        last_handled_rotate_at: observed.rotate_handled.clone(),
        ..ApiTokenStatus::default()
    }
}

/// When the token expires, truncated to seconds.
pub(super) fn expires_at(object: &ApiToken) -> Option<Timestamp> {
    let at = object.spec.expires_at.as_ref()?.0;
    // The database has microseconds, so a finer time would never equal the row's.
    Some(Timestamp::from_second(at.as_second()).unwrap_or(at))
}

pub(super) fn secret_name(object: &ApiToken) -> String {
    secret::name_of(object, object.spec.secret.as_ref(), "token")
}

#[cfg(test)]
mod tests;
