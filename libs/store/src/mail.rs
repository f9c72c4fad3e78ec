//! Mail: how it is accepted, read and deleted, and the stream of all messages.

pub(crate) mod accept;
mod address;
pub(crate) mod changes;
pub(crate) mod inbox;
mod mailbox_message;
pub(crate) mod message;
pub(crate) mod partition;
pub(crate) mod purge;
pub(crate) mod raw;
pub(crate) mod recipient;
pub(crate) mod scan;
pub(crate) mod stream;
pub(crate) mod tenant_message;
pub(crate) mod usage;
