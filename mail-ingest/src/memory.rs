//! The memory for message data. Beyond the budget mail is deferred with `452 4.3.1`, so that many
//! incomplete messages can't exhaust the memory of the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The memory that all sessions of a process share. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct MemoryBudget(Arc<BudgetState>);

#[derive(Debug)]
struct BudgetState {
    limit: usize,
    used: AtomicUsize,
}

impl MemoryBudget {
    /// A budget of `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self(Arc::new(BudgetState { limit, used: AtomicUsize::new(0) }))
    }

    /// An empty permit, which grows with the buffer that it is for.
    pub(crate) fn permit(&self) -> MemoryPermit {
        MemoryPermit { budget: self.clone(), bytes: 0 }
    }

    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }
}

/// A permit for the memory of one message; released on drop.
#[derive(Debug)]
pub(crate) struct MemoryPermit {
    budget: MemoryBudget,
    bytes: usize,
}

impl MemoryPermit {
    /// Grows the permit to `bytes`, unless it is larger already. `false` if the budget is exhausted,
    /// and then nothing changes.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> bool {
        let Some(additional) = bytes.checked_sub(self.bytes) else { return true };
        let BudgetState { limit, used } = &*self.budget.0;
        let grown = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(additional).filter(|used| used <= limit)
        });
        if grown.is_ok() {
            self.bytes = bytes;
        }
        grown.is_ok()
    }

    /// Releases all memory; the permit can grow again.
    pub(crate) fn release(&mut self) {
        self.budget.0.used.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = 0;
    }
}

impl Drop for MemoryPermit {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_share_the_budget_and_release_it() {
        let budget = MemoryBudget::new(100);
        let (mut first, mut second) = (budget.permit(), budget.permit());
        assert!(first.grow_to(60));
        assert!(!second.grow_to(41));
        assert!(second.grow_to(40));
        assert!(second.grow_to(10), "a permit never shrinks");
        assert_eq!((budget.used(), second.bytes), (100, 40));
        drop(first);
        assert!(second.grow_to(100));
        drop(second);
        assert_eq!(budget.used(), 0);
    }
}
