//! tempmail as a library: the command line, and the roles wired together. `main.rs` only calls
//! [`command::run`]; the tests and benchmarks start the same [`roles`] in their own process.

pub mod command;
mod process;
pub mod roles;
