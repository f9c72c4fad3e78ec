//! Tenants with their tokens, and mailboxes: those of tenants and free ones.

pub(crate) mod mailbox;
pub(crate) mod minted_token;
pub(crate) mod pro_mailbox;
pub(crate) mod tenant;
pub(crate) mod token;
