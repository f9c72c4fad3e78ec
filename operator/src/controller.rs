//! Runs a controller a kind, and what keeps them informed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, TryStreamExt as _};
use kube::core::{DeserializeGuard, ObjectMeta};
use kube::runtime::controller::{self, Action};
use kube::runtime::reflector::{self, store::Writer};
use kube::runtime::{Controller, Predicate as _, PredicateConfig, WatchStreamExt as _, predicates, watcher};
use kube::{Api, ResourceExt as _};
use tempmail_crds::{ApiToken, CustomDomain, Mailbox, SystemDomain, Tenant, Webhook};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::backoff::jittered;
use crate::context::{Context, Writers};
use crate::failure::Failure;
use crate::kind::Kind;
use crate::trigger::{self, ObjectKey};
use crate::{finalizer, invalid, mirror, orphan, status, tenancy, tenant};

/// Objects of a kind that are worked on at once.
const CONCURRENCY: u16 = 16;
/// Changes of one object within this time are one.
const DEBOUNCE: Duration = Duration::from_millis(100);
/// An object that is as it should be is looked at again after this long, for what nobody tells of.
const RESYNC: Duration = Duration::from_secs(600);
/// An object that changed while it was worked on is looked at again after this long.
const STALE_AGAIN: Duration = Duration::from_millis(200);
/// An annotation with this value pauses an object.
const TRUE: &str = "true";

/// Runs all of them until `stop` is cancelled, and what is in hand is finished.
///
/// # Errors
/// Another operator leads, or one of them panicked.
pub(crate) async fn run_all(
    (context, mut writers): (Context, Writers),
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let context = Arc::new(context);
    let mut told = |kind| writers.told.remove(&kind).expect("a receiver a kind");
    let mut tasks = JoinSet::new();

    tasks.spawn(run::<Tenant>(
        (context.tenants.clone(), writers.tenants),
        told(Tenant::KIND),
        Arc::clone(&context),
        stop.clone(),
    ));
    tasks.spawn(run::<SystemDomain>(
        reflector::store(),
        told(SystemDomain::KIND),
        Arc::clone(&context),
        stop.clone(),
    ));
    let domains = reflector::store();
    let webhooks = reflector::store();
    let tokens = reflector::store();
    let mailboxes = reflector::store();
    drop(context.dependents.set(vec![
        tenancy::dependents::<CustomDomain>(domains.0.clone()),
        tenancy::dependents::<Webhook>(webhooks.0.clone()),
        tenancy::dependents::<ApiToken>(tokens.0.clone()),
        tenancy::dependents::<Mailbox>(mailboxes.0.clone()),
    ]));
    tasks.spawn(run::<CustomDomain>(domains, told(CustomDomain::KIND), Arc::clone(&context), stop.clone()));
    tasks.spawn(run::<Webhook>(webhooks, told(Webhook::KIND), Arc::clone(&context), stop.clone()));
    tasks.spawn(run::<ApiToken>(tokens, told(ApiToken::KIND), Arc::clone(&context), stop.clone()));
    tasks.spawn(run::<Mailbox>(mailboxes, told(Mailbox::KIND), Arc::clone(&context), stop.clone()));

    tasks.spawn(tenancy::follow_namespaces(writers.namespaces, Arc::clone(&context), stop.clone()));
    tasks.spawn(mirror::follow_rows(writers.seen, Arc::clone(&context), stop.clone()));
    tasks.spawn(tenant::follow_usage(Arc::clone(&context), stop.clone()));
    tasks.spawn(mirror::verify_domains(Arc::clone(&context), stop.clone()));

    loop {
        tokio::select! {
            ended = tasks.join_next() => match ended {
                Some(ended) => ended?,
                None => return Ok(()),
            },
            () = context.fenced.cancelled() => anyhow::bail!("another operator leads"),
        }
    }
}

type Reflected<K> = (reflector::Store<DeserializeGuard<K>>, Writer<DeserializeGuard<K>>);

/// Runs the controller of a kind, and looks for its orphans. Its own writes of status do not bring an
/// object back.
async fn run<K: Kind>(
    (reader, writer): Reflected<K>,
    told: UnboundedReceiver<ObjectKey>,
    context: Arc<Context>,
    stop: CancellationToken,
) {
    let api: Api<DeserializeGuard<K>> = Api::all(context.client.clone());
    let known = context.known[&K::KIND].clone();
    let objects = watcher(api, watcher::Config::default().any_semantic())
        .default_backoff()
        .modify(|object| {
            object.managed_fields_mut().clear();
            object.annotations_mut().remove("kubectl.kubernetes.io/last-applied-configuration");
        })
        .reflect(writer)
        .inspect_ok(move |event| once_known(event, &known))
        .applied_objects()
        .predicate_filter(
            predicates::generation
                .combine(predicates::annotations)
                .combine(predicates::finalizers)
                .combine(deletion),
            PredicateConfig::default(),
        );
    let config = controller::Config::default().concurrency(CONCURRENCY).debounce(DEBOUNCE);
    let orphans = orphan::follow(reader.clone(), Arc::clone(&context), stop.clone());
    let controller = Controller::for_stream(objects, reader)
        .with_config(config)
        .reconcile_on(trigger::told::<K>(told))
        .graceful_shutdown_on(stop.cancelled_owned())
        .run(reconcile, |object, failure, context| after_failure(&object, failure, &context), context)
        .for_each(async |done| {
            if let Err(error @ (controller::Error::QueueError(_) | controller::Error::RunnerError(_))) = done
            {
                tracing::warn!(kind = K::KIND.as_str(), %error, "a watch broke, and is begun anew");
            }
        });
    tokio::join!(controller, orphans);
}

/// Cancels `known` once all objects of a watch were read. Of those who wait for a reflector's own signal
/// only the last is woken, and a controller is one of them.
pub(crate) fn once_known<K>(event: &watcher::Event<K>, known: &CancellationToken) {
    if matches!(event, watcher::Event::InitDone) {
        known.cancel();
    }
}

/// Whether an object is being deleted.
fn deletion<K: kube::Resource>(object: &K) -> Option<u64> {
    Some(u64::from(object.meta().deletion_timestamp.is_some()))
}

/// One look at an object, counted and timed.
async fn reconcile<K: Kind>(
    object: Arc<DeserializeGuard<K>>,
    context: Arc<Context>,
) -> Result<Action, Failure> {
    let began = Instant::now();
    let done = match &object.0 {
        Ok(object) => settle(object, &context).await,
        Err(undecodable) => invalid::report::<K>(&undecodable.metadata, &undecodable.error, &context).await,
    };
    let kind = K::KIND.as_str();
    let result = if done.is_ok() { "ok" } else { "error" };
    metrics::counter!("tempmail_operator_reconciles_total", "kind" => kind, "result" => result).increment(1);
    metrics::histogram!("tempmail_operator_reconcile_seconds", "kind" => kind).record(began.elapsed());
    if done.is_ok() {
        context.backoff.went_well(uid(&*object));
    }
    done
}

/// Brings an object to where it says, or lets go of it.
async fn settle<K: Kind>(object: &K, context: &Context) -> Result<Action, Failure> {
    if object.meta().deletion_timestamp.is_some() {
        return match object.let_go(context).await? {
            Some(standing) => {
                let again = standing.again;
                status::write(object, standing, context).await?;
                Ok(later(again))
            }
            None => {
                context.recount_of(object);
                finalizer::remove(&object.api(&context.client), object.meta(), context).await?;
                Ok(Action::await_change())
            }
        };
    }
    if object.annotations().get(tempmail_crds::annotation::PAUSED).is_some_and(|value| value == TRUE) {
        status::pause(object, context).await?;
        return Ok(Action::await_change());
    }
    let object = &*finalizer::ensure(object, context).await?;
    let standing = object.make_true(context).await?;
    let again = standing.again;
    status::write(object, standing, context).await?;
    Ok(later(again))
}

fn later(again: Option<Duration>) -> Action {
    Action::requeue(jittered(again.map_or(RESYNC, |again| again.min(RESYNC))))
}

/// When an object is tried again.
fn after_failure<K: Kind>(object: &DeserializeGuard<K>, failure: &Failure, context: &Context) -> Action {
    let (kind, reason) = (K::KIND.as_str(), failure.reason());
    metrics::counter!("tempmail_operator_reconcile_errors_total", "kind" => kind, "reason" => reason)
        .increment(1);
    match failure {
        Failure::Stale => return Action::requeue(STALE_AGAIN),
        Failure::Fenced => context.fenced.cancel(),
        failure => {
            tracing::warn!(kind, uid = %uid(object), error = %failure, "an object is tried again later");
        }
    }
    Action::requeue(context.backoff.failed(uid(object)))
}

/// The object's uid.
pub(crate) fn uid<K: kube::Resource>(object: &K) -> Uuid {
    uid_of(object.meta())
}

/// The uid of an object; nil if it has none, which never comes from the API server.
pub(crate) fn uid_of(metadata: &ObjectMeta) -> Uuid {
    metadata.uid.as_deref().and_then(|uid| uid.parse().ok()).unwrap_or_default()
}
