//! What is the same for every kind: the controller, the driver of a reconciliation, and what its steps use.

pub(crate) mod backoff;
pub(crate) mod cache;
mod condition_metric;
pub(crate) mod context;
pub(crate) mod controller;
pub(crate) mod driver;
pub(crate) mod grant;
pub(crate) mod namespace_selector;
mod ownership;
pub(crate) mod refusal;
pub(crate) mod secret;
pub(crate) mod secret_check;
pub(crate) mod usage_refresh;
pub(crate) mod vanished;
pub(crate) mod watched_kind;
pub(crate) mod work_queue;
