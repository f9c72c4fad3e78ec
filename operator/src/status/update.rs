//! The status that a plan ends with: conditions with their reasons, summed up for kstatus.

use std::time::Duration;

use tempmail_crds::Condition;

use super::message::{self, Message};
use super::reason::Reason;

/// When to reconcile an object again that waits for something without notifications.
pub(crate) const RETRY_SOON: Duration = Duration::from_secs(60);

/// The type of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConditionType {
    /// The resource is as declared.
    Ready,
    /// The tenant allows the object, and nothing conflicts with it.
    Accepted,
    /// The DNS records of the domain are correct.
    Verified,
    /// Events are sent to the webhook.
    Delivering,
    /// The object becomes Ready without a change of the object (kstatus).
    Reconciling,
    /// The object does not become Ready until someone acts (kstatus).
    Stalled,
    /// The tenant is suspended.
    Suspended,
    /// The tenant exceeds its limits, which were lowered.
    QuotaExceeded,
    /// An annotation pauses the reconciliation.
    ReconciliationPaused,
}

impl ConditionType {
    /// All types, in the order of the status.
    pub const ALL: [Self; 9] = [
        Self::Ready,
        Self::Accepted,
        Self::Verified,
        Self::Delivering,
        Self::Reconciling,
        Self::Stalled,
        Self::Suspended,
        Self::QuotaExceeded,
        Self::ReconciliationPaused,
    ];

    /// `type` of the condition.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::Accepted => "Accepted",
            Self::Verified => "Verified",
            Self::Delivering => "Delivering",
            Self::Reconciling => "Reconciling",
            Self::Stalled => "Stalled",
            Self::Suspended => "Suspended",
            Self::QuotaExceeded => "QuotaExceeded",
            Self::ReconciliationPaused => "ReconciliationPaused",
        }
    }
}

/// `status` of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConditionStatus {
    True,
    False,
    Unknown,
}

impl ConditionStatus {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// A condition to write, without the time of its transition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConditionUpdate {
    pub kind: ConditionType,
    pub status: ConditionStatus,
    pub reason: Reason,
    pub message: String,
}

impl ConditionUpdate {
    /// A condition with the reason and the text of a message.
    pub(crate) fn new(kind: ConditionType, status: ConditionStatus, message: Message) -> Self {
        let Message { reason, text } = message;
        Self { kind, status, reason, message: text }
    }

    /// Whether the condition that was written last has the same status and reason.
    pub(crate) fn is_written(&self, written: &[Condition]) -> bool {
        has_condition(written, self.kind, self.status, Some(self.reason))
    }
}

/// Whether there is a condition of this type and status, and with this reason if one is given.
pub(crate) fn has_condition(
    conditions: &[Condition],
    kind: ConditionType,
    status: ConditionStatus,
    reason: Option<Reason>,
) -> bool {
    conditions.iter().any(|condition| {
        condition.type_ == kind.as_str()
            && condition.status == status.as_str()
            && reason.is_none_or(|reason| condition.reason == reason.as_str())
    })
}

/// The status to write, and when to reconcile the object again.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StatusUpdate<S> {
    /// The status without its conditions.
    pub status: S,
    pub conditions: Vec<ConditionUpdate>,
    /// When to reconcile the object again, if earlier than at the next resync.
    pub requeue_after: Option<Duration>,
}

/// How an object that is not Ready makes progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The object becomes Ready without a change of the object: kstatus `InProgress`.
    Reconciling,
    /// Someone must act first: kstatus `Failed`.
    Stalled,
}

impl<S> StatusUpdate<S> {
    /// Ready and Accepted.
    pub(crate) fn ready(status: S) -> Self {
        let conditions = vec![
            ConditionUpdate::new(ConditionType::Ready, ConditionStatus::True, message::ready()),
            ConditionUpdate::new(ConditionType::Accepted, ConditionStatus::True, message::accepted()),
        ];
        Self { status, conditions, requeue_after: None }
    }

    /// Accepted, and not Ready.
    pub(crate) fn not_ready(status: S, message: Message, progress: Progress) -> Self {
        let mut update = Self::ready(status);
        let ready = ConditionUpdate::new(ConditionType::Ready, ConditionStatus::False, message.clone());
        update.conditions[0] = ready;
        update.conditions.push(progress.condition(message));
        update
    }

    /// Not Accepted. Reconciled again soon, since the conflict may end without a notification.
    pub(crate) fn not_accepted(status: S, message: Message, progress: Progress) -> Self {
        let conditions = vec![
            ConditionUpdate::new(ConditionType::Ready, ConditionStatus::False, message.clone()),
            ConditionUpdate::new(ConditionType::Accepted, ConditionStatus::False, message.clone()),
            progress.condition(message),
        ];
        Self { status, conditions, requeue_after: Some(RETRY_SOON) }
    }

    /// Reconciles again soon.
    pub(crate) fn retry_soon(self) -> Self {
        Self { requeue_after: Some(RETRY_SOON), ..self }
    }

    /// Adds a condition.
    pub(crate) fn with(mut self, condition: ConditionUpdate) -> Self {
        self.conditions.push(condition);
        self
    }

    /// Replaces the message of `Ready` by another one with the same reason.
    pub(crate) fn with_message(mut self, message: Message) -> Self {
        self.conditions[0].message = message.text;
        self
    }

    /// Makes an object of a suspended tenant not Ready, and not Delivering.
    pub(crate) fn suspended(mut self, tenant: &str) -> Self {
        let message = message::tenant_suspended(tenant);
        let was_ready = self.conditions[0].status == ConditionStatus::True;
        for condition in &mut self.conditions {
            let depends = matches!(condition.kind, ConditionType::Ready | ConditionType::Delivering);
            if depends && condition.status == ConditionStatus::True {
                *condition = ConditionUpdate::new(condition.kind, ConditionStatus::False, message.clone());
            }
        }
        if was_ready {
            self.conditions.push(Progress::Stalled.condition(message));
        }
        self
    }

    /// Names the tenant in the message of a true `Accepted`.
    pub(crate) fn accepted_by(mut self, tenant: &str) -> Self {
        for condition in &mut self.conditions {
            if condition.reason == Reason::Accepted {
                condition.message = message::accepted_by(tenant).text;
            }
        }
        self
    }
}

impl Progress {
    fn condition(self, message: Message) -> ConditionUpdate {
        let kind = match self {
            Self::Reconciling => ConditionType::Reconciling,
            Self::Stalled => ConditionType::Stalled,
        };
        ConditionUpdate::new(kind, ConditionStatus::True, message)
    }
}
