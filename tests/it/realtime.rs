//! Real-time delivery over several processes, one Postgres and one Redis: every subscriber receives every mail once,
//! whatever fails.

mod chaos;
mod drain;
mod faults;
pub mod fixture;
mod flood;
mod permits;
mod revocation;
