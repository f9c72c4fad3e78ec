//! API tokens, custom domains and mailboxes, as more than one surface manages them. Each surface gives its
//! paths, operation ids and caller; the handlers are the same.

pub(crate) mod api_token;
pub(crate) mod custom_domain;
pub(crate) mod mailbox;
