//! Conditions of objects.

use tempmail_crds::Condition;

use super::message::Message;
use super::reason::Reason;

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
