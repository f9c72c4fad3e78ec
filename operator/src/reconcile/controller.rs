//! The controller of a kind: watches its objects and reconciles them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, TryStreamExt as _};
use kube::ResourceExt as _;
use kube::core::DeserializeGuard;
use kube::runtime::controller::{self, Action};
use kube::runtime::reflector::{self, ObjectRef, store::Writer};
use kube::runtime::{Controller, Predicate as _, PredicateConfig, WatchStreamExt as _, predicates, watcher};
use tempmail_store::ResourceKind;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::driver::{Reconcile, reconcile_object};
use super::orphan::Deletion;
use super::trigger::{ObjectKey, trigger_stream};
use super::{condition_metric, invalid_object, object_watch, orphan, outage};
use crate::error::ReconcileError;
use crate::kind::{Kind, uid};

/// Changes of one object within this time are reconciled once.
const DEBOUNCE: Duration = Duration::from_millis(100);
/// Delay after which an object is retried that changed during its reconciliation.
const STALE_RETRY: Duration = Duration::from_millis(200);

/// The cache of a kind's objects, and its writer.
pub(crate) type ObjectCache<K> = (reflector::Store<DeserializeGuard<K>>, Writer<DeserializeGuard<K>>);

/// Runs the controller of a kind and the sweep of its orphans until `stop` is cancelled and running
/// reconciliations are finished. Status changes alone do not trigger a reconciliation.
pub(crate) async fn run<K: Reconcile>(
    (objects, writer): ObjectCache<K>,
    triggers: UnboundedReceiver<ObjectKey>,
    context: Arc<Context>,
    stop: CancellationToken,
) {
    let apis = K::watched_apis(&context.client, &context.config.operator.watch_namespaces);
    let watches = apis.into_iter().map(|api| (api, watcher::Config::default().any_semantic())).collect();
    let synced = context.cache_syncs.of(K::KIND).clone();
    let conditions = condition_metric::report_periodically(objects.clone(), synced.clone(), stop.clone());
    let (deletions, deleted) = unbounded_channel();
    let [watching, changing, triggered, completed] = std::array::from_fn(|_| Arc::clone(&context));
    let observe = move |event: &watcher::Event<DeserializeGuard<K>>| {
        report_deletion(event, &deletions, &watching);
    };
    let changes = object_watch::watch(watches, remove_unread, writer, synced, observe)
        .predicate_filter(
            predicates::generation
                .combine(predicates::annotations)
                .combine(predicates::finalizers)
                .combine(deletion),
            PredicateConfig::default(),
        )
        .inspect_ok(move |object| {
            report_grant_change::<K>(&changing);
            changing.work_queues.of(K::KIND).add(key(object));
        });
    let triggers = trigger_stream::<K>(triggers)
        .inspect(move |object| triggered.work_queues.of(K::KIND).add(key_of(object)));
    let config = controller::Config::default().concurrency(K::CONCURRENCY).debounce(DEBOUNCE);
    let orphans = orphan::sweep_periodically(objects.clone(), deleted, Arc::clone(&context), stop.clone());
    let controller = Controller::for_stream(changes, objects)
        .with_config(config)
        .reconcile_on(triggers)
        .graceful_shutdown_on(stop.cancelled_owned())
        .run(reconcile, |object, error, context| after_error(&object, error, &context), context)
        .for_each(|done| {
            match done {
                Err(controller::Error::ObjectNotFound(object)) => {
                    completed.work_queues.of(K::KIND).forget(&key_of(&object));
                }
                Err(error @ (controller::Error::QueueError(_) | controller::Error::RunnerError(_))) => {
                    tracing::warn!(kind = K::KIND.as_str(), %error, "a watch failed, and is restarted");
                }
                Ok(_) | Err(controller::Error::ReconcilerFailed(..)) => {}
            }
            std::future::ready(())
        });
    tokio::join!(controller, orphans, conditions);
}

/// The key of an object.
fn key<K: Kind>(object: &DeserializeGuard<K>) -> ObjectKey {
    ObjectKey { namespace: object.namespace(), name: object.name_any() }
}

/// The key of an object that is named by a reference.
fn key_of<K: reflector::Lookup>(object: &ObjectRef<K>) -> ObjectKey {
    ObjectKey { namespace: object.namespace.clone(), name: object.name.clone() }
}

/// Removes what no reconciliation reads, and would only take memory.
fn remove_unread<K: kube::Resource>(object: &mut K) {
    object.managed_fields_mut().clear();
    object.annotations_mut().remove("kubectl.kubernetes.io/last-applied-configuration");
}

/// Reports objects that are gone, or may be: some may have been deleted while the watch was interrupted.
fn report_deletion<K: Kind>(
    event: &watcher::Event<DeserializeGuard<K>>,
    deletions: &UnboundedSender<Deletion>,
    context: &Context,
) {
    let deletion = match event {
        watcher::Event::Delete(object) => Deletion::Object(uid(object)),
        watcher::Event::InitDone => Deletion::Unseen,
        _ => return,
    };
    // The receiver is gone only at shutdown.
    let _ = deletions.send(deletion);
    report_grant_change::<K>(context);
}

/// Reports that the objects of the kind may allow less than before.
fn report_grant_change<K: Kind>(context: &Context) {
    if K::KIND == ResourceKind::Tenant {
        context.grant_changes.notify_one();
    }
}

/// Whether an object is being deleted, as a predicate.
fn deletion<K: kube::Resource>(object: &K) -> Option<u64> {
    Some(u64::from(object.meta().deletion_timestamp.is_some()))
}

/// Reconciles an object, counted and timed.
async fn reconcile<K: Reconcile>(
    object: Arc<DeserializeGuard<K>>,
    context: Arc<Context>,
) -> Result<Action, ReconcileError> {
    let (began, queue) = (Instant::now(), context.work_queues.of(K::KIND));
    queue.begin(&key(&object));
    let done = match &object.0 {
        Ok(object) => reconcile_object(object, &context).await,
        Err(invalid) => invalid_object::reconcile::<K>(&invalid.metadata, &invalid.error, &context).await,
    };
    if let (Ok(object), Err(ReconcileError::Store(error))) = (&object.0, &done)
        && error.is_unavailable()
    {
        outage::report(object, &context).await;
    }
    let kind = K::KIND.as_str();
    let result = if done.is_ok() { "ok" } else { "error" };
    metrics::counter!("tempmail_operator_reconciles_total", "kind" => kind, "result" => result).increment(1);
    let took = began.elapsed();
    metrics::histogram!("tempmail_operator_reconcile_seconds", "kind" => kind).record(took);
    queue.done(took);
    if done.is_ok() {
        context.backoff.reset(uid(&*object));
    }
    done
}

/// When an object is retried after an error.
fn after_error<K: Kind>(object: &DeserializeGuard<K>, error: &ReconcileError, context: &Context) -> Action {
    let (kind, reason) = (K::KIND.as_str(), error.reason());
    metrics::counter!("tempmail_operator_reconcile_errors_total", "kind" => kind, "reason" => reason)
        .increment(1);
    context.work_queues.of(K::KIND).retry();
    match error {
        ReconcileError::Stale => return Action::requeue(STALE_RETRY),
        ReconcileError::Fenced => context.fenced.cancel(),
        error => {
            let (namespace, name, uid) = (object.namespace(), object.name_any(), uid(object));
            tracing::warn!(kind, namespace, name, %uid, %error, "a reconciliation failed, and is retried");
        }
    }
    Action::requeue(context.backoff.record_failure(uid(object)))
}
