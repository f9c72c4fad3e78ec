//! Kubernetes objects and the rows that they manage: a file a kind, and what the kinds have in common.

pub(crate) mod cluster;
pub(crate) mod custom_domain;
pub(crate) mod grant;
pub(crate) mod mailbox;
pub(crate) mod resource;
pub(crate) mod system_domain;
pub(crate) mod tenant;
pub(crate) mod token;
pub(crate) mod webhook;
