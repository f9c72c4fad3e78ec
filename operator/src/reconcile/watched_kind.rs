//! What the leader has for each kind that it watches: the cache of the kind's objects, and the queue of its controller.

use std::any::Any;
use std::borrow::Cow;

use futures_util::Stream;
use futures_util::stream::unfold;
use kube::ResourceExt as _;
use kube::core::DeserializeGuard;
use kube::runtime::reflector::{self, ObjectRef};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::cache::CacheSync;
use super::work_queue::{ObjectKey, WorkQueue};
use crate::kind::{Kind, ObjectScope as _};

/// What objects depend on, by name.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Dependency<'a> {
    Tenant(&'a str),
    Namespace(&'a str),
    Domain(&'a str),
}

/// A kind that is watched.
pub(crate) struct WatchedKind<K: Kind> {
    /// The cached objects.
    pub objects: reflector::Store<DeserializeGuard<K>>,
    /// Whether `objects` holds everything that the API server has.
    pub synced: CacheSync,
    pub work_queue: WorkQueue,
    /// To the controller. It drains the queue at once and deduplicates, so the queue is bounded by what one change of a
    /// row, a tenant or a namespace enqueues.
    triggers: UnboundedSender<ObjectKey>,
}

impl<K: Kind> WatchedKind<K> {
    /// The kind with an empty cache, in an operator that is restricted to these namespaces if there are any; and the
    /// objects that are enqueued, for the controller.
    pub(crate) fn new(
        objects: reflector::Store<DeserializeGuard<K>>,
        namespaces: &[String],
    ) -> (Self, UnboundedReceiver<ObjectKey>) {
        let (triggers, receiver) = unbounded_channel();
        let synced = CacheSync::new(K::Scope::restrict(namespaces));
        (Self { objects, synced, work_queue: WorkQueue::new(K::kind(&())), triggers }, receiver)
    }

    /// Enqueues an object for reconciliation.
    pub(crate) fn enqueue(&self, object: ObjectKey) {
        // The receiver is gone only at shutdown.
        drop(self.triggers.send(object));
    }
}

/// A kind whose type is not known where it is used.
trait AnyWatchedKind: Any + Send + Sync {
    /// `kind` of the objects.
    fn kind(&self) -> Cow<'static, str>;
    /// Enqueues an object for reconciliation.
    fn enqueue(&self, object: ObjectKey);
    /// Enqueues the cached objects that depend on `dependency`.
    fn enqueue_dependents(&self, dependency: Dependency<'_>);
}

impl<K: Kind> AnyWatchedKind for WatchedKind<K> {
    fn kind(&self) -> Cow<'static, str> {
        K::kind(&())
    }

    fn enqueue(&self, object: ObjectKey) {
        WatchedKind::enqueue(self, object);
    }

    fn enqueue_dependents(&self, dependency: Dependency<'_>) {
        let depends = |object: &DeserializeGuard<K>| match (dependency, &object.0) {
            (Dependency::Tenant(name), Ok(object)) => object.tenant_name() == Some(name),
            (Dependency::Namespace(name), _) => object.namespace().as_deref() == Some(name),
            (Dependency::Domain(name), Ok(object)) => object.domain_name() == Some(name),
            (Dependency::Tenant(_) | Dependency::Domain(_), Err(_)) => false,
        };
        for object in self.objects.state_filter(depends) {
            self.enqueue(ObjectKey { namespace: object.namespace(), name: object.name_any() });
        }
    }
}

/// All kinds that are watched.
#[derive(Default)]
pub(crate) struct WatchedKinds(Vec<Box<dyn AnyWatchedKind>>);

impl WatchedKinds {
    /// Adds a kind.
    pub(crate) fn add<K: Kind>(&mut self, kind: WatchedKind<K>) {
        self.0.push(Box::new(kind));
    }

    /// The kind of this type.
    ///
    /// # Panics
    /// It was not added: `visit_kinds` does not name it.
    pub(crate) fn of<K: Kind>(&self) -> &WatchedKind<K> {
        let mut kinds = self.0.iter().map(|kind| &**kind as &dyn Any);
        kinds.find_map(|kind| kind.downcast_ref()).expect("every kind is watched")
    }

    /// Enqueues an object of the kind with this name, if there is such a kind.
    pub(crate) fn enqueue(&self, kind: &str, object: ObjectKey) {
        if let Some(kind) = self.0.iter().find(|watched| watched.kind() == kind) {
            kind.enqueue(object);
        }
    }

    /// Enqueues the objects of all kinds that depend on a tenant, a namespace or a custom domain.
    pub(crate) fn enqueue_dependents(&self, dependency: Dependency<'_>) {
        for kind in &self.0 {
            kind.enqueue_dependents(dependency);
        }
    }
}

/// The enqueued objects, as a controller takes them.
pub(crate) fn trigger_stream<K: Kind>(
    receiver: UnboundedReceiver<ObjectKey>,
) -> impl Stream<Item = ObjectRef<DeserializeGuard<K>>> {
    unfold(receiver, async |mut receiver| {
        let key = receiver.recv().await?;
        let mut reference = ObjectRef::new(&key.name);
        reference.namespace = key.namespace;
        Some((reference, receiver))
    })
}
