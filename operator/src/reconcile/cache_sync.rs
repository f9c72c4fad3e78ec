//! Whether the caches of objects hold everything that the API server has.

use std::collections::HashMap;
use std::time::Duration;

use kube::runtime::watcher;
use tempmail_store::ResourceKind;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::error::ReconcileError;

/// How long a reconciliation waits for a cache.
const WAIT: Duration = Duration::from_secs(10);

/// A signal that a cache was filled. A reflector's own signal wakes only the last of several waiters, and a
/// controller is one of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct CacheSync(CancellationToken);

impl CacheSync {
    /// Inspects an event of the watch that fills the cache: the first list ends with `InitDone`.
    pub(crate) fn observe<K>(&self, event: &watcher::Event<K>) {
        if matches!(event, watcher::Event::InitDone) {
            self.0.cancel();
        }
    }

    /// Waits until the cache is filled.
    pub(crate) async fn synced(&self) {
        self.0.cancelled().await;
    }

    /// Waits as long as a reconciliation may, or fails with [`ReconcileError::CacheNotSynced`].
    pub(crate) async fn wait(&self) -> Result<(), ReconcileError> {
        timeout(WAIT, self.synced()).await.map_err(|_late| ReconcileError::CacheNotSynced)
    }
}

/// The signals of all caches.
#[derive(Debug)]
pub(crate) struct CacheSyncs {
    kinds: HashMap<ResourceKind, CacheSync>,
    pub namespaces: CacheSync,
}

impl CacheSyncs {
    pub(crate) fn new() -> Self {
        let kinds = ResourceKind::ALL.into_iter().map(|kind| (kind, CacheSync::default())).collect();
        Self { kinds, namespaces: CacheSync::default() }
    }

    /// The signal of the cache of a kind.
    pub(crate) fn of(&self, kind: ResourceKind) -> &CacheSync {
        &self.kinds[&kind]
    }
}
