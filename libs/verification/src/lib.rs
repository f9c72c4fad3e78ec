//! Verification of custom domains: whether the records that prove a domain exist, and what follows.

mod decision;
mod name;
mod resolver;
mod settings;
mod verifier;
mod vote;

pub use name::{NameError, custom_domain_name};
pub use resolver::server_query::Transport;
pub use resolver::{Resolver, ResolverError};
pub use settings::{DomainSettings, TokenKeyError, verify_token_key};
pub use verifier::{CheckOutcome, CheckResult, Verifier};
pub use vote::{DomainFindings, ExpectedRecords};
