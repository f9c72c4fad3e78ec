//! How a role runs.

use std::pin::Pin;

/// A role that runs until it has drained, or fails.
///
/// Boxed, so that all code of a role is compiled once, with its own crate: a plain future would be compiled
/// again in every program that polls it.
pub type RoleFuture = Pin<Box<dyn Future<Output = anyhow::Result<()>> + Send>>;
