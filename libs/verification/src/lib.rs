//! Custom domains: whether the records that prove a domain are there, and what follows.

mod decision;
mod finding;
mod name;
mod resolver;
mod rules;
mod verifier;

pub use finding::{DomainFindings, ExpectedRecords, SeenRecords, ServerAnswer, tally};
pub use name::{NameError, custom_domain_name};
pub use resolver::{Resolver, ResolverError, Transport};
pub use rules::DomainSettings;
pub use verifier::{CheckOutcome, CheckResult, Verifier};
