//! Webhooks: pending events are signed, sent and recorded, at least once.
//!
//! The pending events of a webhook are a lane. A process claims lanes for some seconds with a lease, and
//! works on each by itself, so that a receiver that hangs delays its own events only. Whatever happens to the
//! process, its leases expire, and what was not recorded is sent again.

mod attempt;
mod destination;
mod dispatcher;
mod failure;
mod file_descriptors;
mod lane;
mod payload;
mod resolver;
mod retry;
mod sender;
mod signature;
mod trust;

pub(crate) use dispatcher::Dispatcher;
