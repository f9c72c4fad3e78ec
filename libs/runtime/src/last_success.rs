//! When a loop last succeeded.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// When a loop last began a pass that succeeded, or when it was created. Clones share it.
#[derive(Debug, Clone)]
pub struct LastSuccess(Arc<Mutex<Instant>>);

impl LastSuccess {
    /// The loop begins now.
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }

    /// A pass succeeded that began at `began`: what it has seen is as old as that.
    pub fn set(&self, began: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = began;
    }

    /// The time since then.
    pub fn age(&self) -> Duration {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }
}

impl Default for LastSuccess {
    fn default() -> Self {
        Self::new()
    }
}
