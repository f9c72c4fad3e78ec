//! Custom domains: whether the records that prove a domain are there, and what follows.

mod finding;
mod resolver;
mod settings;

pub use finding::{Answer, Finding, Findings, Question, decide};
pub use resolver::{Resolver, ResolverError, Transport};
pub use settings::{DnsMode, DnsSettings};
