//! The octets of message data that a pod may hold in memory at once. Beyond it, mail is
//! deferred with `452 4.3.1`, so that many half-sent messages can't take the process down.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What all sessions of a pod share. Cheap to clone.
#[derive(Debug, Clone)]
pub struct MemoryBudget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limit: usize,
    used: AtomicUsize,
}

impl MemoryBudget {
    /// A budget of `limit` octets.
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(Shared { limit, used: AtomicUsize::new(0) }))
    }

    /// A permit for nothing yet, to be grown with the buffer it stands for.
    pub fn permit(&self) -> MemoryPermit {
        MemoryPermit { budget: self.clone(), octets: 0 }
    }

    /// Octets that permits stand for now.
    pub fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }
}

/// The right to hold some octets of message data; given back when dropped.
#[derive(Debug)]
pub struct MemoryPermit {
    budget: MemoryBudget,
    octets: usize,
}

impl MemoryPermit {
    /// Octets it stands for.
    pub fn octets(&self) -> usize {
        self.octets
    }

    /// Makes it stand for `octets` if it stood for fewer; `false` where the budget has no room,
    /// and then nothing changes.
    pub fn grow_to(&mut self, octets: usize) -> bool {
        let Some(more) = octets.checked_sub(self.octets) else { return true };
        let Shared { limit, used } = &*self.budget.0;
        let grown = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(more).filter(|used| used <= limit)
        });
        if grown.is_ok() {
            self.octets = octets;
        }
        grown.is_ok()
    }

    /// Gives all of it back; the permit can grow again.
    pub fn release(&mut self) {
        self.budget.0.used.fetch_sub(self.octets, Ordering::Relaxed);
        self.octets = 0;
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
    fn permits_share_the_budget_and_give_back() {
        let budget = MemoryBudget::new(100);
        let (mut first, mut second) = (budget.permit(), budget.permit());
        assert!(first.grow_to(60));
        assert!(!second.grow_to(41));
        assert!(second.grow_to(40));
        assert!(second.grow_to(10), "a permit never shrinks");
        assert_eq!((budget.used(), second.octets()), (100, 40));
        drop(first);
        assert!(second.grow_to(100));
        drop(second);
        assert_eq!(budget.used(), 0);
    }
}
