//! Refreshes the usage in the status of Tenants whose objects were created, changed or deleted. What changes
//! over HTTP is found by the resync.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tempmail_crds::Tenant;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::work_queue::ObjectKey;

/// Interval between refreshes, which bounds the writes to a Tenant however many objects change.
const INTERVAL: Duration = Duration::from_secs(10);

/// Enqueues the Tenants to refresh until `stop` is cancelled.
pub(crate) async fn run(context: Arc<Context>, stop: CancellationToken) {
    while stop.run_until_cancelled(tokio::time::sleep(INTERVAL)).await.is_some() {
        for name in context.usage_refresh.drain() {
            context.kinds.of::<Tenant>().enqueue(ObjectKey { namespace: None, name });
        }
    }
}

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
