//! API tokens, custom domains, documents, mailboxes and messages, as more than one surface manages them. Each surface gives
//! its paths, operation ids and caller; the handlers are the same.

pub(crate) mod api_token;
pub(crate) mod custom_domain;
pub(crate) mod document;
pub(crate) mod mailbox;
pub(crate) mod message;
