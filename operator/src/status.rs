//! Statuses of objects: condition types and reasons, the update that a plan ends with, and its writer.

mod condition;
mod event;
mod reason;
mod update;
mod writer;

pub use self::condition::ConditionType;
pub(crate) use self::condition::{ConditionStatus, ConditionUpdate, has_condition};
pub(crate) use self::event::EventPublisher;
pub use self::reason::Reason;
pub(crate) use self::update::{Progress, RETRY_SOON, StatusUpdate};
pub(crate) use self::writer::{StatusWriter, to_seconds};
