//! Reconciliations of objects that did not change themselves.

use std::collections::HashMap;

use futures_util::Stream;
use futures_util::stream::unfold;
use kube::core::DeserializeGuard;
use kube::runtime::reflector::ObjectRef;
use tempmail_store::ResourceKind;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::kind::Kind;

/// Namespace and name of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ObjectKey {
    pub namespace: Option<String>,
    pub name: String,
}

/// A queue to each controller. Controllers drain their queues at once and deduplicate, so a queue is bounded
/// by what one change of a row, a tenant or a namespace enqueues.
#[derive(Debug)]
pub(crate) struct TriggerQueues(HashMap<ResourceKind, UnboundedSender<ObjectKey>>);

/// The receiving ends, by kind.
pub(crate) type TriggerReceivers = HashMap<ResourceKind, UnboundedReceiver<ObjectKey>>;

impl TriggerQueues {
    pub(crate) fn new() -> (Self, TriggerReceivers) {
        let (senders, receivers) = ResourceKind::ALL
            .into_iter()
            .map(|kind| {
                let (sender, receiver) = unbounded_channel();
                ((kind, sender), (kind, receiver))
            })
            .unzip();
        (Self(senders), receivers)
    }

    /// Enqueues an object for reconciliation.
    pub(crate) fn enqueue(&self, kind: ResourceKind, key: ObjectKey) {
        if let Some(sender) = self.0.get(&kind) {
            // The receiver is gone only at shutdown.
            drop(sender.send(key));
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
