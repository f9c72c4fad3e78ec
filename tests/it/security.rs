//! Nothing of a person's mail or secrets is in a log or a metric.

pub(crate) mod at_rest;
mod canaries;
