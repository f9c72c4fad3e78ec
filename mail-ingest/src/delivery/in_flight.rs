//! Counts open mail transactions, whose mail the batcher may wait for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The count of a process. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct InFlight(Arc<AtomicUsize>);

/// Counts one transaction until it is dropped.
#[derive(Debug)]
pub(crate) struct InFlightGuard(InFlight);

impl InFlight {
    /// Open transactions, including those whose mail is queued.
    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn begin(&self) -> InFlightGuard {
        self.0.fetch_add(1, Ordering::Relaxed);
        InFlightGuard(self.clone())
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
