//! Commands that administer tenants, tokens, system domains, clusters and the database.

mod admin_args;
pub(crate) mod audit;
pub(crate) mod cluster;
mod database;
pub(super) mod output;
pub(crate) mod restored;
pub(crate) mod system_domain;
pub(crate) mod tenant;
pub(crate) mod token;

pub(crate) use admin_args::AdminArgs;
