//! Webhooks: what waits in the store is sent, signed, and recorded, at least once.
//!
//! A webhook with waiting events is a lane. A process takes lanes in hand for some seconds and
//! works on each by itself, so that a receiver that hangs keeps nobody waiting but its own events.
//! Whatever happens to the process, its lanes are free again when their time is over, and what was
//! not recorded is sent again.

mod address_guard;
mod destination;
mod dispatcher;
mod event;
mod lane;
mod open_files;
mod schedule;
mod sender;
mod signature;

pub(crate) use dispatcher::Dispatcher;
