//! Custom domains: whether the records that prove a domain are there, and what follows.

mod decision;
mod finding;
mod name;
mod resolver;
mod rules;
mod verifier;

pub use finding::{Answer, Findings, Question, Seen, decide};
pub use name::{NameError, custom_domain_name};
pub use resolver::{Resolver, ResolverError, Transport};
pub use rules::DomainRules;
pub use tempmail_store::{Finding, RecordFound};
pub use verifier::{Checked, Outcome, Verifier};
