//! The controller of a kind: watches its objects and reconciles them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, TryStreamExt as _};
use kube::ResourceExt as _;
use kube::core::DeserializeGuard;
use kube::runtime::controller::{self, Action};
use kube::runtime::reflector::{self, ObjectRef, store::Writer};
use kube::runtime::{Controller, Predicate as _, PredicateConfig, WatchStreamExt as _, predicates, watcher};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::driver::{Reconcile, reconcile_object};
use super::vanished::Deletion;
use super::watched_kind::trigger_stream;
use super::work_queue::{ObjectKey, WorkQueue};
use super::{cache, condition_metric, refusal, vanished};
use crate::error::ReconcileError;
use crate::kind::{Kind, uid, watched_apis};

/// Changes of one object within this time are reconciled once.
const DEBOUNCE: Duration = Duration::from_millis(100);
/// Delay after which an object is retried that changed during its reconciliation.
const STALE_RETRY: Duration = Duration::from_millis(200);

/// Runs the controller of a kind, which fills the cache of its objects, and the sweep of its orphans until `stop` is
/// cancelled and running reconciliations are finished. Status changes alone do not trigger a reconciliation.
pub(crate) async fn run<K: Reconcile>(
    writer: Writer<DeserializeGuard<K>>,
    triggers: UnboundedReceiver<ObjectKey>,
    context: Arc<Context>,
    stop: CancellationToken,
) {
    let apis = watched_apis(&context.client, &context.config.operator.watch_namespaces);
    let watches = apis.into_iter().map(|api| (api, watcher::Config::default().any_semantic())).collect();
    let (objects, synced) = (writer.as_reader(), context.kinds.of::<K>().synced.clone());
    let conditions = condition_metric::report_periodically(objects.clone(), synced.clone(), stop.clone());
    let (deletions, deleted) = unbounded_channel();
    let [watching, changing, triggered, completed] = std::array::from_fn(|_| Arc::clone(&context));
    let observe = move |event: &watcher::Event<DeserializeGuard<K>>| {
        report_deletion(event, &deletions, &watching);
    };
    let changes = cache::watch(watches, remove_unread, writer, synced, observe)
        .predicate_filter(
            predicates::generation
                .combine(predicates::annotations)
                .combine(predicates::finalizers)
                .combine(deletion),
            PredicateConfig::default(),
        )
        .inspect_ok(move |object| {
            report_grant_change::<K>(&changing);
            work_queue::<K>(&changing).add(key(object));
        });
    let triggers =
        trigger_stream::<K>(triggers).inspect(move |object| work_queue::<K>(&triggered).add(key_of(object)));
    let config = controller::Config::default().concurrency(K::CONCURRENCY).debounce(DEBOUNCE);
    let orphans = vanished::sweep_periodically(objects.clone(), deleted, Arc::clone(&context), stop.clone());
    let controller = Controller::for_stream(changes, objects)
        .with_config(config)
        .reconcile_on(triggers)
        .graceful_shutdown_on(stop.cancelled_owned())
        .run(reconcile, |object, error, context| after_error(&object, error, &context), context)
        .for_each(|done| {
            match done {
                Err(controller::Error::ObjectNotFound(object)) => {
                    work_queue::<K>(&completed).forget(&key_of(&object));
                }
                Err(error @ (controller::Error::QueueError(_) | controller::Error::RunnerError(_))) => {
                    tracing::warn!(kind = %K::kind(&()), %error, "a watch failed, and is restarted");
                }
                Ok(_) | Err(controller::Error::ReconcilerFailed(..)) => {}
            }
            std::future::ready(())
        });
    tokio::join!(controller, orphans, conditions);
}

fn work_queue<K: Kind>(context: &Context) -> &WorkQueue {
    &context.kinds.of::<K>().work_queue
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
    if K::GIVES_GRANTS {
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
    let (began, queue) = (Instant::now(), work_queue::<K>(&context));
    queue.begin(&key(&object));
    let done = match &object.0 {
        Ok(object) => reconcile_object(object, &context).await,
        Err(invalid) => refusal::report_unreadable::<K>(&invalid.metadata, &invalid.error, &context).await,
    };
    if let (Ok(object), Err(ReconcileError::Store(error))) = (&object.0, &done)
        && error.is_unavailable()
    {
        refusal::report_outage(object, &context).await;
    }
    let kind = K::kind(&());
    let result = if done.is_ok() { "ok" } else { "error" };
    metrics::counter!("tempmail_operator_reconciles_total", "kind" => kind.clone(), "result" => result)
        .increment(1);
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
    let (kind, reason) = (K::kind(&()), error.reason());
    metrics::counter!("tempmail_operator_reconcile_errors_total", "kind" => kind.clone(), "reason" => reason)
        .increment(1);
    work_queue::<K>(context).retry();
    match error {
        ReconcileError::Stale => return Action::requeue(STALE_RETRY),
        ReconcileError::Fenced => context.fenced.cancel(),
        error => {
            let (namespace, name, uid) = (object.namespace(), object.name_any(), uid(object));
            tracing::warn!(%kind, namespace, name, %uid, %error, "a reconciliation failed, and is retried");
        }
    }
    Action::requeue(context.backoff.record_failure(uid(object)))
}
