//! How many mail transactions are open: what the batcher may wait a moment for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The count of one process. Cheap to clone; clones are one.
#[derive(Debug, Clone, Default)]
pub struct UnderWay(Arc<AtomicUsize>);

/// One open transaction, until it is dropped.
#[derive(Debug)]
pub struct MailUnderWay(UnderWay);

impl UnderWay {
    /// Transactions that are open now, those whose mail waits for its verdict included.
    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn begin(&self) -> MailUnderWay {
        self.0.fetch_add(1, Ordering::Relaxed);
        MailUnderWay(self.clone())
    }
}

impl Drop for MailUnderWay {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
