//! What the leader runs: a controller per kind, and the loops beside them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::{self, store::Writer};
use tempmail_crds::{ApiToken, CustomDomain, Mailbox, SystemDomain, Tenant, Webhook};
use tempmail_model::clock::Clock;
use tempmail_model::key::MasterKey;
use tempmail_model::verify_token::VerifyTokenKey;
use tempmail_model::webhook::WebhookSecretSealer;
use tempmail_runtime::config::Config;
use tempmail_runtime::readiness::Readiness;
use tempmail_store::{ChangeSnapshot, Epoch, Store};
use tempmail_verification::Verifier;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::kind::Kind;
use crate::password::PasswordCheckCache;
use crate::reconcile::backoff::Backoff;
use crate::reconcile::cache_sync::CacheSyncs;
use crate::reconcile::context::Context;
use crate::reconcile::controller::{self, ObjectCache};
use crate::reconcile::dependents::Dependents;
use crate::reconcile::driver::Reconcile;
use crate::reconcile::seen_secret::SeenSecrets;
use crate::reconcile::trigger::{TriggerQueues, TriggerReceivers};
use crate::reconcile::usage_queue::UsageRefreshQueue;
use crate::reconcile::work_queue::WorkQueues;
use crate::status::{EventPublisher, StatusWriter};
use crate::{cluster, lost_grants, namespace_watch, row_watch, secret_check, usage_refresh, verification};

/// What an operator is given.
pub(crate) struct Dependencies {
    pub config: Arc<Config>,
    pub store: Store,
    pub clock: Arc<dyn Clock>,
    /// The keys of `secrets.keys`.
    pub keys: Vec<MasterKey>,
    pub client: Client,
}

/// The caches of the objects that the leader watches.
struct Caches {
    tenants: ObjectCache<Tenant>,
    system_domains: ObjectCache<SystemDomain>,
    custom_domains: ObjectCache<CustomDomain>,
    webhooks: ObjectCache<Webhook>,
    tokens: ObjectCache<ApiToken>,
    mailboxes: ObjectCache<Mailbox>,
    namespaces: (reflector::Store<PartialObjectMeta<Namespace>>, Writer<PartialObjectMeta<Namespace>>),
}

/// Reconciles the objects of a cluster until `stop` is cancelled and running reconciliations are finished. While the rows
/// can't be read, `readiness` reports it.
///
/// # Errors
/// Another operator leads, or a task panicked.
pub(crate) async fn run(
    dependencies: Dependencies,
    cluster: Uuid,
    verify_tokens: VerifyTokenKey,
    readiness: Readiness,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let Some(epoch) = cluster::acquire_epoch(&dependencies.store, cluster, &readiness, &stop).await? else {
        return Ok(());
    };
    let caches = Caches::new();
    let (triggers, receivers) = TriggerQueues::new();
    // Read before any object, so that no change of a row in between is missed.
    let (context, last) = start(dependencies, verify_tokens, (cluster, epoch), &caches, triggers).await?;
    let context = Arc::new(context);
    let mut tasks = spawn_controllers(caches, receivers, &context, &stop);
    tasks.spawn(lost_grants::run(Arc::clone(&context), stop.clone()));
    tasks.spawn(row_watch::run(last, Arc::clone(&context), readiness, stop.clone()));
    tasks.spawn(cluster::record_heartbeats(Arc::clone(&context), stop.clone()));
    tasks.spawn(secret_check::run(Arc::clone(&context), stop.clone()));
    tasks.spawn(usage_refresh::run(Arc::clone(&context), stop.clone()));
    tasks.spawn(verification::run(Arc::clone(&context), stop.clone()));
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

/// The shared state of the leader of a cluster, and the position in the feed of changes.
async fn start(
    dependencies: Dependencies,
    verify_tokens: VerifyTokenKey,
    (cluster, epoch): (Uuid, Epoch),
    caches: &Caches,
    triggers: TriggerQueues,
) -> anyhow::Result<(Context, ChangeSnapshot)> {
    let Dependencies { config, store, clock, keys, client } = dependencies;
    let (_, last) = store.list_changed_resources(None).await.context("the changes of rows")?;
    let events = EventPublisher::new(client.clone());
    let status = StatusWriter {
        client: client.clone(),
        store: store.clone(),
        epoch,
        clock: Arc::clone(&clock),
        events: events.clone(),
    };
    let context = Context {
        cluster,
        verifier: Arc::new(Verifier::new(&config, store.clone(), Arc::clone(&clock))),
        verify_tokens,
        sealer: WebhookSecretSealer::new(&keys),
        status,
        events,
        backoff: Backoff::default(),
        cache_syncs: CacheSyncs::new(&config.operator.watch_namespaces),
        tenants: caches.tenants.0.clone(),
        namespaces: caches.namespaces.0.clone(),
        dependents: caches.dependents(),
        work_queues: WorkQueues::new(),
        grant_changes: Notify::new(),
        usage_refresh: UsageRefreshQueue::default(),
        password_checks: PasswordCheckCache::default(),
        seen_secrets: SeenSecrets::new(Duration::from_secs(config.operator.secret_check_seconds)),
        fenced: CancellationToken::new(),
        config,
        client,
        store,
        epoch,
        clock,
        triggers,
    };
    Ok((context, last))
}

fn spawn_controllers(
    caches: Caches,
    mut receivers: TriggerReceivers,
    context: &Arc<Context>,
    stop: &CancellationToken,
) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    spawn(caches.tenants, &mut receivers, &mut tasks, context, stop);
    spawn(caches.system_domains, &mut receivers, &mut tasks, context, stop);
    spawn(caches.custom_domains, &mut receivers, &mut tasks, context, stop);
    spawn(caches.webhooks, &mut receivers, &mut tasks, context, stop);
    spawn(caches.tokens, &mut receivers, &mut tasks, context, stop);
    spawn(caches.mailboxes, &mut receivers, &mut tasks, context, stop);
    tasks.spawn(namespace_watch::run(caches.namespaces.1, Arc::clone(context), stop.clone()));
    tasks
}

/// Spawns the controller of a kind.
fn spawn<K: Kind + Reconcile>(
    cache: ObjectCache<K>,
    receivers: &mut TriggerReceivers,
    tasks: &mut JoinSet<()>,
    context: &Arc<Context>,
    stop: &CancellationToken,
) {
    let receiver = receivers.remove(&K::KIND).expect("each kind has a receiver");
    tasks.spawn(controller::run(cache, receiver, Arc::clone(context), stop.clone()));
}

impl Caches {
    fn new() -> Self {
        Self {
            tenants: reflector::store(),
            system_domains: reflector::store(),
            custom_domains: reflector::store(),
            webhooks: reflector::store(),
            tokens: reflector::store(),
            mailboxes: reflector::store(),
            namespaces: reflector::store(),
        }
    }

    /// The kinds whose objects refer to Tenants.
    fn dependents(&self) -> Vec<Dependents> {
        vec![
            Dependents::new(self.custom_domains.0.clone()),
            Dependents::new(self.webhooks.0.clone()),
            Dependents::new(self.tokens.0.clone()),
            Dependents::new(self.mailboxes.0.clone()),
        ]
    }
}
