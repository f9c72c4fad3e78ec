//! Statuses of objects: condition types, reasons and messages, the update that a plan ends with, and its writer.

pub(crate) mod message;
mod reason;
mod reference;
mod update;
mod writer;

pub(crate) use self::message::Message;
pub use self::reason::Reason;
pub use self::reference::reason_reference;
pub use self::update::ConditionType;
pub(crate) use self::update::{
    ConditionStatus, ConditionUpdate, Progress, RETRY_SOON, StatusUpdate, has_condition,
};
pub(crate) use self::writer::{EventPublisher, StatusWriter, to_seconds};
