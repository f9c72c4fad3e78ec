//! Tells controllers to look at objects that did not change themselves.

use std::collections::HashMap;

use futures_util::Stream;
use futures_util::stream::unfold;
use kube::core::DeserializeGuard;
use kube::runtime::reflector::ObjectRef;
use tempmail_store::ResourceKind;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::kind::Kind;

/// Name and namespace of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ObjectKey {
    pub namespace: Option<String>,
    pub name: String,
}

/// A way to each controller. What waits is bounded by what is told at once: each change of a row, a
/// tenant or a namespace names each object once.
#[derive(Debug)]
pub(crate) struct Triggers(HashMap<ResourceKind, UnboundedSender<ObjectKey>>);

/// The other ends, by kind.
pub(crate) type Receivers = HashMap<ResourceKind, UnboundedReceiver<ObjectKey>>;

impl Triggers {
    pub(crate) fn new() -> (Self, Receivers) {
        let (senders, receivers) = ResourceKind::ALL
            .into_iter()
            .map(|kind| {
                let (sender, receiver) = unbounded_channel();
                ((kind, sender), (kind, receiver))
            })
            .unzip();
        (Self(senders), receivers)
    }

    /// Has the controller of this kind look at the object.
    pub(crate) fn pull(&self, kind: ResourceKind, key: ObjectKey) {
        if let Some(sender) = self.0.get(&kind) {
            // The controller is gone only when all ends.
            drop(sender.send(key));
        }
    }
}

/// What a controller is told to look at.
pub(crate) fn told<K: Kind>(
    receiver: UnboundedReceiver<ObjectKey>,
) -> impl Stream<Item = ObjectRef<DeserializeGuard<K>>> {
    unfold(receiver, async |mut receiver| {
        let key = receiver.recv().await?;
        let mut reference = ObjectRef::new(&key.name);
        reference.namespace = key.namespace;
        Some((reference, receiver))
    })
}
