//! Whether the caches of objects hold everything that the API server has.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tempmail_store::ResourceKind;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::error::ReconcileError;

/// How long a reconciliation waits for a cache.
const WAIT: Duration = Duration::from_secs(10);

/// The signals that a cache was filled, one for each watch that fills it. A reflector's own signal wakes only
/// the last of several waiters, and a controller is one of them.
#[derive(Debug, Clone)]
pub(crate) struct CacheSync(Arc<[WatchedScope]>);

/// What one watch lists.
#[derive(Debug)]
struct WatchedScope {
    /// `None`: the whole cluster.
    namespace: Option<String>,
    listed: CancellationToken,
}

impl CacheSync {
    /// Of a cache that a watch of each of these namespaces fills, or one of the whole cluster if there are
    /// none.
    pub(crate) fn new(namespaces: &[String]) -> Self {
        let scope = |namespace| WatchedScope { namespace, listed: CancellationToken::new() };
        Self(match namespaces {
            [] => [scope(None)].into(),
            namespaces => namespaces.iter().map(|namespace| scope(Some(namespace.clone()))).collect(),
        })
    }

    /// Signals that the cache holds what the watch of this index listed first.
    pub(crate) fn set(&self, watch: usize) {
        if let Some(scope) = self.0.get(watch) {
            scope.listed.cancel();
        }
    }

    /// The namespace that the watch of this index lists; `None`: all of them.
    pub(crate) fn namespace(&self, watch: usize) -> Option<&str> {
        self.0.get(watch)?.namespace.as_deref()
    }

    /// Whether the cache holds every object of a namespace (`None`: every object that is in none).
    pub(crate) fn covers(&self, namespace: Option<&str>) -> bool {
        self.0.iter().any(|scope| {
            let is_watched = scope.namespace.is_none() || scope.namespace.as_deref() == namespace;
            is_watched && scope.listed.is_cancelled()
        })
    }

    /// Waits until the cache is filled.
    pub(crate) async fn synced(&self) {
        for scope in self.0.iter() {
            scope.listed.cancelled().await;
        }
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
    /// Of an operator that is restricted to these namespaces, if there are any. Tenants and system domains
    /// are in no namespace, and watched in any case.
    pub(crate) fn new(namespaces: &[String]) -> Self {
        let sync = |kind| match kind {
            ResourceKind::Tenant | ResourceKind::SystemDomain => CacheSync::new(&[]),
            _ => CacheSync::new(namespaces),
        };
        let kinds = ResourceKind::ALL.into_iter().map(|kind| (kind, sync(kind))).collect();
        Self { kinds, namespaces: CacheSync::new(namespaces) }
    }

    /// The signal of the cache of a kind.
    pub(crate) fn of(&self, kind: ResourceKind) -> &CacheSync {
        &self.kinds[&kind]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn covers_the_namespaces_that_were_listed() {
        let namespaces = ["a", "b"].map(str::to_owned);
        let sync = CacheSync::new(&namespaces);
        assert!(!sync.covers(Some("a")), "it covers a namespace before it was listed");
        sync.set(0);
        assert!(sync.covers(Some("a")));
        assert!(!sync.covers(Some("b")), "it covers a namespace before it was listed");
        assert!(!sync.covers(Some("outside")) && !sync.covers(None), "it covers what is not watched");
    }

    #[test]
    fn covers_everything_in_the_whole_cluster() {
        let sync = CacheSync::new(&[]);
        assert!(!sync.covers(Some("a")) && !sync.covers(None));
        sync.set(0);
        assert!(sync.covers(Some("a")) && sync.covers(None));
    }
}
