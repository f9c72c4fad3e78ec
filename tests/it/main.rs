//! What tempmail promises, through its public surface. The folders mirror the interface: a file
//! has the routes of a resource. Files beside them are about one subject that several routes share.

#![expect(clippy::unwrap_used, reason = "what is not there fails the test where it is missed")]

mod addresses;
mod administration;
mod attacks;
mod bus;
mod clock;
mod command;
mod compat;
mod contract;
mod descriptors;
mod documents;
mod dual_stack;
mod harness;
mod http;
mod kubernetes;
mod mailbox_api;
mod matrix;
mod mcp;
mod message;
mod metrics;
mod owner;
mod page;
mod policy;
mod postgres;
mod pro_api;
mod proxies;
mod queries;
mod realtime;
mod security;
mod smtp;
mod store;
mod stream;
mod token_api;
mod traces;
mod up;
mod verification;
mod webhooks;
mod worker;
