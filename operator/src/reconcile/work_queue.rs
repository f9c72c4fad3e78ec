//! The work queue of a controller, as metrics with the names that controller-runtime gives them.
//!
//! kube-rs does not show its queue, so it is followed from outside: an object waits from the trigger that a controller
//! takes until its reconciliation begins. Retries and resyncs are timers inside the queue and are not counted as waiting.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram};
use tokio::time::Instant;

/// Namespace and name of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ObjectKey {
    pub namespace: Option<String>,
    pub name: String,
}

/// The objects of a kind that wait for their reconciliation.
#[derive(Debug)]
pub(crate) struct WorkQueue {
    /// Since when each object waits.
    waiting: Mutex<HashMap<ObjectKey, Instant>>,
    depth: Gauge,
    adds: Counter,
    retries: Counter,
    queue_seconds: Histogram,
    work_seconds: Histogram,
}

impl WorkQueue {
    /// An empty queue, whose metrics have this `name`.
    pub(crate) fn new(name: Cow<'static, str>) -> Self {
        let depth = metrics::gauge!("workqueue_depth", "name" => name.clone());
        depth.set(0.0);
        Self {
            waiting: Mutex::default(),
            depth,
            adds: metrics::counter!("workqueue_adds_total", "name" => name.clone()),
            retries: metrics::counter!("workqueue_retries_total", "name" => name.clone()),
            queue_seconds: metrics::histogram!("workqueue_queue_duration_seconds", "name" => name.clone()),
            work_seconds: metrics::histogram!("workqueue_work_duration_seconds", "name" => name),
        }
    }

    /// Adds an object, unless it waits already.
    pub(crate) fn add(&self, key: ObjectKey) {
        let mut waiting = self.lock();
        if let Entry::Vacant(entry) = waiting.entry(key) {
            entry.insert(Instant::now());
            self.adds.increment(1);
            self.set_depth(waiting.len());
        }
    }

    /// Takes an object whose reconciliation begins. One that a timer of the queue triggered did not wait here.
    pub(crate) fn begin(&self, key: &ObjectKey) {
        if let Some(since) = self.remove(key) {
            self.queue_seconds.record(since.elapsed());
        }
    }

    /// Takes an object that is gone.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.remove(key);
    }

    /// Records how long a reconciliation took.
    pub(crate) fn done(&self, took: Duration) {
        self.work_seconds.record(took);
    }

    /// Counts a reconciliation that is retried.
    pub(crate) fn retry(&self) {
        self.retries.increment(1);
    }

    fn remove(&self, key: &ObjectKey) -> Option<Instant> {
        let mut waiting = self.lock();
        let since = waiting.remove(key);
        self.set_depth(waiting.len());
        since
    }

    #[expect(clippy::cast_precision_loss, reason = "a gauge of some thousands")]
    fn set_depth(&self, objects: usize) {
        self.depth.set(objects as f64);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, Instant>> {
        // Each change is a single operation, so a panic elsewhere leaves the map consistent.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey { namespace: None, name: name.to_owned() }
    }

    #[test]
    fn holds_an_object_once_until_its_reconciliation_begins() {
        let queue = WorkQueue::new("Tenant".into());
        queue.add(key("acme"));
        let since = queue.lock()[&key("acme")];
        queue.add(key("acme"));
        queue.add(key("shop"));
        assert_eq!(queue.lock().len(), 2);
        assert_eq!(queue.lock()[&key("acme")], since, "it waits since it was added first");
        queue.begin(&key("acme"));
        queue.begin(&key("acme"));
        queue.forget(&key("shop"));
        assert!(queue.lock().is_empty());
    }
}
