//! Mail: how it is accepted, read and deleted, and the stream of all messages.

pub(crate) mod accept;
pub(crate) mod changes;
mod class;
pub(crate) mod generation;
pub(crate) mod inbox;
mod mailbox_message;
pub(crate) mod message;
mod message_page;
pub(crate) mod partition;
pub(crate) mod purge;
pub(crate) mod raw;
pub(crate) mod recipient;
mod reserved;
pub(crate) mod scan;
mod shared_address;
pub(crate) mod stream;
pub(crate) mod tenant_message;
pub(crate) mod usage;
