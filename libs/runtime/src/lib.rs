//! What every process needs: configuration, keys, logs, metrics and traces, probes, and the two-stage
//! shutdown.

pub mod admin;
pub mod config;
pub mod cores;
pub mod file_watch;
pub mod keys;
pub mod known_host;
pub mod last_success;
pub mod listener;
pub mod liveness;
pub mod readiness;
pub mod role;
pub mod shutdown;
pub mod telemetry;
pub mod traces;
