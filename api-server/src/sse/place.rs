//! How many streams the process has.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The gauge of open streams.
const OPEN: &str = "tempmail_streams";

/// The streams of one process.
#[derive(Debug)]
pub(crate) struct Streams {
    most: usize,
    open: Arc<AtomicUsize>,
}

/// The place of a stream; given back when dropped.
#[derive(Debug)]
pub(super) struct Place(Arc<AtomicUsize>);

impl Streams {
    /// None yet, of at most `most`.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, open: Arc::default() }
    }

    /// A place for one more; `None` where all are taken.
    pub(super) fn take(&self) -> Option<Place> {
        let one_more = |open: usize| (open < self.most).then_some(open + 1);
        self.open.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).ok()?;
        metrics::gauge!(OPEN).increment(1);
        Some(Place(Arc::clone(&self.open)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
        metrics::gauge!(OPEN).decrement(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_and_given_back() {
        let streams = Streams::new(2);
        let held = [streams.take(), streams.take()];
        assert!(held.iter().all(Option::is_some) && streams.take().is_none());
        drop(held);
        assert!(streams.take().is_some());
    }
}
