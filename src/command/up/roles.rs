//! The roles of one process: bound first, so that a port that is taken stops the start.

use std::sync::Arc;

use anyhow::Context as _;
use tempmail_api_server::ApiServer;
use tempmail_bus::SharedBus;
use tempmail_mail_ingest::Ingest;
use tempmail_model::clock::SystemClock;
use tempmail_runtime::admin::AdminServer;
use tempmail_runtime::config::Config;
use tempmail_runtime::keys::Keys;
use tempmail_runtime::readiness::Readiness;
use tempmail_runtime::shutdown::Shutdown;
use tempmail_runtime::telemetry;
use tempmail_store::Store;
use tempmail_worker::Worker;
use tokio::task::JoinSet;

use super::installation::Installation;
use crate::{bus, clock_sync};

/// All roles, bound and not yet running.
pub struct Roles {
    ingest: Ingest,
    api: ApiServer,
    worker: Worker,
    bus: SharedBus,
    admin: AdminServer,
    store: Store,
    clock: Arc<SystemClock>,
    readiness: Readiness,
}

impl Roles {
    /// Binds them over one bus; each has its own connections to Postgres, so that readers can't
    /// keep mail waiting.
    pub async fn bind(config: &Arc<Config>, keys: Keys, installation: &Installation) -> anyhow::Result<Self> {
        let Installation { store, clock, readiness, .. } = installation;
        let connect = |name| Store::connect(config.postgres.url.expose(), config.postgres.pool, name);
        let admin = AdminServer::bind(&config.admin, readiness.clone(), telemetry::metrics_handle()?).await?;
        let bus = bus::connect(config, store).await?;
        let ingest = Ingest::bind(
            config.clone(),
            connect("tempmail-ingest")?,
            bus.clone(),
            clock.clone(),
            readiness.clone(),
        )
        .await?;
        let api = ApiServer::bind(
            config.clone(),
            connect("tempmail-api")?,
            bus.clone(),
            clock.clone(),
            keys.clone(),
            readiness.clone(),
        )
        .await?;
        let worker = Worker::new(config.clone(), connect("tempmail-worker")?, clock.clone())
            .with_webhooks(bus.clone(), &keys.secrets)?
            .with_readiness(readiness.clone());
        Ok(Self {
            ingest,
            api,
            worker,
            bus,
            admin,
            store: store.clone(),
            clock: clock.clone(),
            readiness: readiness.clone(),
        })
    }

    /// Runs them until they have drained. One that ends before it was told takes the others
    /// along.
    pub async fn run(self, shutdown: Shutdown) -> anyhow::Result<()> {
        let admin = tokio::spawn(self.admin.run(shutdown.clone()));
        let clock_sync = clock_sync::run(self.store, self.clock, self.readiness, shutdown.stop.clone());
        let clock_sync = tokio::spawn(clock_sync);
        let mut roles = JoinSet::new();
        roles.spawn(named("ingest", self.ingest.run(shutdown.clone())));
        roles.spawn(named("api", self.api.run(shutdown.clone())));
        roles.spawn(named("worker", self.worker.run(shutdown.clone())));
        let mut result = Ok(());
        while let Some(ended) = roles.join_next().await {
            let ended = ended.context("a role panicked").and_then(|ended| ended);
            result = result.and(ended);
            shutdown.drain.cancel();
        }
        self.bus.close().await;
        shutdown.stop.cancel();
        clock_sync.await.context("the clock's loop panicked")?;
        result.and(admin.await.context("the admin server panicked")?)
    }
}

async fn named(role: &'static str, running: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    running.await.context(role)
}
