//! What is the same for every kind: the controller, the driver of a reconciliation, and what its steps use.

pub(crate) mod backoff;
pub(crate) mod cache_sync;
mod condition_metric;
pub(crate) mod context;
pub(crate) mod controller;
pub(crate) mod dependents;
pub(crate) mod driver;
mod finalizer;
pub(crate) mod grant;
mod invalid_object;
pub(crate) mod issued;
pub(crate) mod namespace_selector;
pub(crate) mod object_watch;
mod orphan;
mod outage;
pub(crate) mod predecessor;
mod recorded;
pub(crate) mod refusal;
pub(crate) mod secret;
pub(crate) mod secret_error;
pub(crate) mod seen_secret;
pub(crate) mod trigger;
pub(crate) mod usage_queue;
pub(crate) mod work_queue;
