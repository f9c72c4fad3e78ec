//! Background work of an installation: maintenance of the database, verification of custom domains, and
//! delivery to webhooks.
//!
//! Any number of workers may run at once: what only one of them may do is done under a lock or a lease, and
//! what another has done already is not done again.

mod maintenance;
mod webhook;
mod worker;

pub use worker::Worker;
