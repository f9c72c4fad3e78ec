//! HTTP as such: connections and their deadlines, the middleware that every request passes, request
//! extractors, limits on requests, and the error table of the three surfaces.

pub(crate) mod client;
pub(crate) mod connection;
pub(crate) mod cors;
pub(crate) mod deadline;
pub(crate) mod error;
pub(crate) mod expiring_set;
pub(crate) mod gates;
pub(crate) mod json_body;
pub(crate) mod middleware;
pub(crate) mod own_origin;
pub(crate) mod parameter;
pub(crate) mod prefer;
pub(crate) mod rate_limit;
