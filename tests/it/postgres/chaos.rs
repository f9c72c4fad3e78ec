//! Postgres, or the network before it, falls silent: connections stay open, and nothing is answered. And the database
//! goes back in time: it is restored, or a standby takes over that lacks the last commits.
//!
//! Ignored by default: `tests/run chaos` runs them.

mod restore;
mod silence;
