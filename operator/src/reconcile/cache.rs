//! Caches of objects: watches that fill them, one of the whole cluster or one of each namespace that the operator is
//! restricted to, and whether they hold everything that the API server has.

use std::collections::HashSet;
use std::fmt::Debug;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::select_all;
use futures_util::{Stream, StreamExt as _};
use kube::runtime::reflector::{ObjectRef, Store, store::Writer};
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
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

/// The objects that are created, changed or listed, once they are in the cache of `writer`. There is one
/// watch for each of `sync`. A watch that fails is restarted; one of several does not affect the others.
/// `observe` is called with every event of each, once the cache has it.
pub(crate) fn watch<K>(
    watches: Vec<(Api<K>, watcher::Config)>,
    modify: fn(&mut K),
    writer: Writer<K>,
    sync: CacheSync,
    mut observe: impl FnMut(&Event<K>) + Send + 'static,
) -> impl Stream<Item = watcher::Result<K>> + Send + 'static
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let mut cache = Cache::new(watches.len(), writer, sync);
    let streams = watches.into_iter().enumerate().map(|(watch, (api, config))| {
        watcher(api, config).default_backoff().modify(modify).map(move |event| (watch, event)).boxed()
    });
    select_all(streams).filter_map(move |(watch, event)| ready(cache.take(watch, event, &mut observe)))
}

/// A cache that one or several watches fill.
struct Cache<K: Resource<DynamicType = ()> + Clone + 'static> {
    writer: Writer<K>,
    objects: Store<K>,
    sync: CacheSync,
    /// By watch.
    listings: Vec<Listing<K>>,
}

/// What a watch brought.
struct Listing<K: Resource<DynamicType = ()>> {
    /// What the cache has of it.
    known: HashSet<ObjectRef<K>>,
    /// What the current list has so far.
    listed: HashSet<ObjectRef<K>>,
}

impl<K: Resource<DynamicType = ()> + Clone + 'static> Cache<K> {
    fn new(watches: usize, mut writer: Writer<K>, sync: CacheSync) -> Self {
        if watches > 1 {
            // A list replaces the content of a cache as a whole. Lists of a part do not: what is listed is
            // added, and what no longer is, is removed.
            writer.apply_watcher_event(&Event::Init);
            writer.apply_watcher_event(&Event::InitDone);
        }
        let listing = |_| Listing { known: HashSet::new(), listed: HashSet::new() };
        Self { objects: writer.as_reader(), writer, sync, listings: (0..watches).map(listing).collect() }
    }

    /// The object that an event brings, once the cache has it.
    fn take(
        &mut self,
        watch: usize,
        event: watcher::Result<Event<K>>,
        observe: &mut impl FnMut(&Event<K>),
    ) -> Option<watcher::Result<K>> {
        let event = match event {
            Ok(event) => event,
            Err(error) if self.is_single() => return Some(Err(error)),
            // A controller that gets an error waits, and so would the objects of the other namespaces.
            Err(error) => {
                let (kind, namespace) = (K::kind(&()), self.sync.namespace(watch));
                tracing::warn!(%kind, namespace, %error, "a watch failed, and is restarted");
                return None;
            }
        };
        self.apply(watch, &event);
        observe(&event);
        match event {
            Event::Apply(object) | Event::InitApply(object) => Some(Ok(object)),
            Event::Delete(_) | Event::Init | Event::InitDone => None,
        }
    }

    fn apply(&mut self, watch: usize, event: &Event<K>) {
        if self.is_single() {
            self.writer.apply_watcher_event(event);
        } else {
            self.merge(watch, event);
        }
        if matches!(event, Event::InitDone) {
            self.sync.set(watch);
        }
    }

    fn is_single(&self) -> bool {
        self.listings.len() == 1
    }

    /// Applies the event of one of several watches.
    fn merge(&mut self, watch: usize, event: &Event<K>) {
        let Listing { known, listed } = &mut self.listings[watch];
        match event {
            Event::Init => listed.clear(),
            Event::InitApply(object) => {
                known.insert(ObjectRef::from_obj(object));
                listed.insert(ObjectRef::from_obj(object));
                self.writer.apply_watcher_event(&Event::Apply(object.clone()));
            }
            Event::InitDone => {
                let former = std::mem::replace(known, std::mem::take(listed));
                for gone in former.difference(known) {
                    if let Some(object) = self.objects.get(gone) {
                        self.writer.apply_watcher_event(&Event::Delete(K::clone(&object)));
                    }
                }
            }
            Event::Apply(object) => {
                known.insert(ObjectRef::from_obj(object));
                self.writer.apply_watcher_event(event);
            }
            Event::Delete(object) => {
                known.remove(&ObjectRef::from_obj(object));
                self.writer.apply_watcher_event(event);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::ResourceExt as _;
    use kube::core::ObjectMeta;
    use kube::runtime::reflector;

    use super::*;

    fn object(namespace: &str, name: &str) -> ConfigMap {
        let metadata = ObjectMeta {
            namespace: Some(namespace.to_owned()),
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        };
        ConfigMap { metadata, ..ConfigMap::default() }
    }

    /// Applies a list of the objects with these names.
    fn list(cache: &mut Cache<ConfigMap>, watch: usize, namespace: &str, names: &[&str]) {
        cache.apply(watch, &Event::Init);
        for name in names {
            cache.apply(watch, &Event::InitApply(object(namespace, name)));
        }
        cache.apply(watch, &Event::InitDone);
    }

    /// `namespace/name` of each object, in order.
    fn names(objects: &Store<ConfigMap>) -> Vec<String> {
        let name = |object: &ConfigMap| (object.namespace().unwrap_or_default(), object.name_any());
        let names = objects.state().into_iter().map(|object| name(&object));
        let mut names: Vec<String> = names.map(|(namespace, name)| format!("{namespace}/{name}")).collect();
        names.sort();
        names
    }

    #[test]
    fn keeps_the_objects_of_other_namespaces_when_one_is_listed_again() {
        let (objects, writer) = reflector::store();
        let sync = CacheSync::new(&["a", "b"].map(str::to_owned));
        let mut cache = Cache::new(2, writer, sync.clone());
        list(&mut cache, 0, "a", &["one", "two"]);
        assert!(sync.covers(Some("a")) && !sync.covers(Some("b")));
        list(&mut cache, 1, "b", &["one"]);
        assert_eq!(names(&objects), ["a/one", "a/two", "b/one"]);

        cache.apply(0, &Event::Apply(object("a", "three")));
        cache.apply(1, &Event::Delete(object("b", "one")));
        cache.apply(1, &Event::Apply(object("b", "two")));
        list(&mut cache, 0, "a", &["two", "three"]);
        assert_eq!(names(&objects), ["a/three", "a/two", "b/two"]);
    }

    #[test]
    fn removes_what_an_unfinished_list_had_and_the_next_one_has_not() {
        let (objects, writer) = reflector::store();
        let mut cache = Cache::new(2, writer, CacheSync::new(&["a", "b"].map(str::to_owned)));
        cache.apply(0, &Event::Init);
        cache.apply(0, &Event::InitApply(object("a", "one")));
        list(&mut cache, 0, "a", &["two"]);
        assert_eq!(names(&objects), ["a/two"]);
    }

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
