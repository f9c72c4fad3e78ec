//! What tempmail promises, through its public surface. The folders mirror the interface.

#![expect(clippy::unwrap_used, reason = "what is not there fails the test where it is missed")]

mod mailbox_api;
mod message;
mod owner;
mod policy;
mod queries;
mod security;
mod smtp;
mod stream;
mod token_api;
mod up;
mod worker;
