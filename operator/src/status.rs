//! Statuses of objects: condition types, reasons and messages, the update that a plan ends with, and its writer.

mod condition;
mod event;
pub(crate) mod message;
mod reason;
mod reference;
mod update;
mod writer;

pub use self::condition::ConditionType;
pub(crate) use self::condition::{ConditionStatus, ConditionUpdate, has_condition};
pub(crate) use self::event::EventPublisher;
pub(crate) use self::message::Message;
pub use self::reason::Reason;
pub use self::reference::reason_reference;
pub(crate) use self::update::{Progress, RETRY_SOON, StatusUpdate};
pub(crate) use self::writer::{StatusWriter, to_seconds};
