//! What the leader runs: a controller per kind, and the loops beside them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector;
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

use crate::kinds::{KindVisitor, visit_kinds};
use crate::password::PasswordCheckCache;
use crate::reconcile::backoff::Backoff;
use crate::reconcile::cache::CacheSync;
use crate::reconcile::context::Context;
use crate::reconcile::controller;
use crate::reconcile::driver::Reconcile;
use crate::reconcile::secret_check::{self, SeenSecrets};
use crate::reconcile::usage_refresh::{self, UsageRefreshQueue};
use crate::reconcile::watched_kind::{WatchedKind, WatchedKinds};
use crate::status::{EventPublisher, StatusWriter};
use crate::{leader_election, lost_grants, namespace_watch, row_watch};

/// Pause between two passes over custom domains.
const VERIFICATION_PAUSE: Duration = Duration::from_secs(5);

/// What an operator is given.
pub(crate) struct Dependencies {
    pub config: Arc<Config>,
    pub store: Store,
    pub clock: Arc<dyn Clock>,
    /// The keys of `secrets.keys`.
    pub keys: Vec<MasterKey>,
    pub client: Client,
}

/// Runs a controller until the token is cancelled.
type Controller = Box<dyn FnOnce(Arc<Context>, CancellationToken) -> BoxFuture<'static, ()> + Send>;

/// All kinds, and their controllers.
struct Controllers<'a> {
    /// The namespaces that the operator is restricted to, if there are any.
    namespaces: &'a [String],
    kinds: WatchedKinds,
    controllers: Vec<Controller>,
}

impl KindVisitor for Controllers<'_> {
    fn visit<K: Reconcile>(&mut self) {
        let (objects, writer) = reflector::store();
        let (kind, triggers) = WatchedKind::<K>::new(objects, self.namespaces);
        self.kinds.add(kind);
        self.controllers.push(Box::new(move |context, stop| {
            controller::run::<K>(writer, triggers, context, stop).boxed()
        }));
    }
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
    let Some(epoch) = leader_election::acquire_epoch(&dependencies.store, cluster, &readiness, &stop).await?
    else {
        return Ok(());
    };
    let config = Arc::clone(&dependencies.config);
    let mut all = Controllers {
        namespaces: &config.operator.watch_namespaces,
        kinds: WatchedKinds::default(),
        controllers: Vec::new(),
    };
    visit_kinds(&mut all);
    let (namespaces, namespaces_writer) = reflector::store();
    let caches = (all.kinds, namespaces);
    // Read before any object, so that no change of a row in between is missed.
    let (context, last) = start(dependencies, verify_tokens, (cluster, epoch), caches).await?;
    let context = Arc::new(context);
    let mut tasks = JoinSet::new();
    for controller in all.controllers {
        tasks.spawn(controller(Arc::clone(&context), stop.clone()));
    }
    tasks.spawn(namespace_watch::run(namespaces_writer, Arc::clone(&context), stop.clone()));
    tasks.spawn(lost_grants::run(Arc::clone(&context), stop.clone()));
    tasks.spawn(row_watch::run(last, Arc::clone(&context), readiness, stop.clone()));
    tasks.spawn(leader_election::record_heartbeats(Arc::clone(&context), stop.clone()));
    tasks.spawn(secret_check::run(Arc::clone(&context), stop.clone()));
    tasks.spawn(usage_refresh::run(Arc::clone(&context), stop.clone()));
    tasks.spawn(verify_domains(Arc::clone(&context), stop.clone()));
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
    (kinds, namespaces): (WatchedKinds, reflector::Store<PartialObjectMeta<Namespace>>),
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
        kinds,
        namespaces,
        namespaces_synced: CacheSync::new(&config.operator.watch_namespaces),
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
    };
    Ok((context, last))
}

/// Verifies the custom domains that are due, whether objects declare them or not, until `stop` is cancelled.
async fn verify_domains(context: Arc<Context>, stop: CancellationToken) {
    loop {
        if let Some(Err(error)) = stop.run_until_cancelled(context.verifier.check_due()).await {
            tracing::warn!(%error, "a pass over custom domains failed");
        }
        if stop.run_until_cancelled(tokio::time::sleep(VERIFICATION_PAUSE)).await.is_none() {
            return;
        }
    }
}
