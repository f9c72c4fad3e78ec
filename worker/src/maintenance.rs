//! Maintenance of the database.

pub(crate) mod audit_log;
pub(crate) mod cleanup;
pub(crate) mod partitions;
pub(crate) mod purge;
pub(crate) mod reseal;
