//! Domains: those of the installation, and custom domains of tenants with their verification.

pub(crate) mod check;
pub(crate) mod custom;
mod finding;
pub(crate) mod serving;
pub(crate) mod system;
mod verify_token_key;
