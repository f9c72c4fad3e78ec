//! Real time over several processes, one Postgres and one Redis: whoever listens meets every mail
//! once, whatever dies.

mod complete;
mod drain;
mod faults;
mod flood;
mod places;
mod rights;
mod seeded;
pub mod senders;
mod stage;
