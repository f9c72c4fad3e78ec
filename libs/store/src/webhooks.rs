//! Webhooks, their events, and the records of deliveries.

pub(crate) mod delivery;
pub(crate) mod event;
pub(crate) mod lease;
pub(crate) mod webhook;
