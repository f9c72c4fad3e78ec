//! Tenants whose usage is to be refreshed.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Names of Tenants whose objects were created, changed or deleted since the last refresh.
#[derive(Debug, Default)]
pub(crate) struct UsageRefreshQueue(Mutex<HashSet<String>>);

impl UsageRefreshQueue {
    /// Adds a Tenant.
    pub(crate) fn enqueue(&self, tenant: &str) {
        let mut queued = self.lock();
        if !queued.contains(tenant) {
            queued.insert(tenant.to_owned());
        }
    }

    /// Removes and returns all Tenants.
    pub(crate) fn drain(&self) -> HashSet<String> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<String>> {
        // Each change is a single operation, so a panic elsewhere leaves the set consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
