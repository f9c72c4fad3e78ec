//! Bounds the streams of server-sent events that a process has open.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The gauge of open streams.
const OPEN_STREAMS: &str = "tempmail_streams";

/// The stream permits of one process.
#[derive(Debug)]
pub(crate) struct StreamPermits {
    max: usize,
    held: Arc<AtomicUsize>,
}

/// The permit of a stream; released when dropped.
#[derive(Debug)]
pub(crate) struct StreamPermit(Arc<AtomicUsize>);

impl StreamPermits {
    /// At most `max` streams may be open.
    pub(crate) fn new(max: usize) -> Self {
        Self { max, held: Arc::default() }
    }

    /// A permit for one more stream; `None` where all are held.
    pub(crate) fn acquire(&self) -> Option<StreamPermit> {
        let one_more = |held: usize| (held < self.max).then_some(held + 1);
        self.held.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).ok()?;
        metrics::gauge!(OPEN_STREAMS).increment(1);
        Some(StreamPermit(Arc::clone(&self.held)))
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
        metrics::gauge!(OPEN_STREAMS).decrement(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_the_streams_and_releases_permits_on_drop() {
        let permits = StreamPermits::new(2);
        let held = [permits.acquire(), permits.acquire()];
        assert!(held.iter().all(Option::is_some) && permits.acquire().is_none());
        drop(held);
        assert!(permits.acquire().is_some());
    }
}
