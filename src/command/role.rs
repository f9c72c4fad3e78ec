//! `tempmail api`, `ingest`, `worker`, `operator`: one process a role, with one start for all of them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tempmail_api_server::ApiServer;
use tempmail_mail_ingest::Ingest;
use tempmail_model::clock::SystemClock;
use tempmail_model::key::MasterKey;
use tempmail_operator::{Operator, platform_keys};
use tempmail_runtime::admin::AdminServer;
use tempmail_runtime::config::Config;
use tempmail_runtime::keys::Keys;
use tempmail_runtime::readiness::Readiness;
use tempmail_runtime::shutdown::Shutdown;
use tempmail_runtime::telemetry;
use tempmail_store::{SchemaError, Store};
use tempmail_worker::Worker;

use crate::{bus, clock_sync, open_files};

/// Time between two looks for Postgres while it is away at the start.
const RETRY: Duration = Duration::from_secs(1);

/// What `/readyz` shows until the role itself says what is missing.
const START: &str = "start";

/// What a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The HTTP interface.
    Api,
    /// Inbound SMTP.
    Ingest,
    /// Background work.
    Worker,
    /// Kubernetes resources.
    Operator,
}

impl Role {
    /// What Postgres shows of the process.
    fn application_name(self) -> &'static str {
        match self {
            Self::Api => "tempmail-api",
            Self::Ingest => "tempmail-ingest",
            Self::Worker => "tempmail-worker",
            Self::Operator => "tempmail-operator",
        }
    }
}

/// A role with the keys that it needs, and no others.
enum RoleKeys {
    Api(Keys),
    Ingest,
    /// `secrets.keys`, which open the secrets of webhooks.
    Worker(Vec<MasterKey>),
    /// `secrets.keys`, which seal the secrets of webhooks; `None` where a Secret has them.
    Operator(Option<Vec<MasterKey>>),
}

impl RoleKeys {
    fn of(role: Role, config: &Config) -> anyhow::Result<Self> {
        Ok(match role {
            Role::Api => Self::Api(Keys::from_config(config).context("`jwt.keys` and `secrets.keys`")?),
            Role::Ingest => Self::Ingest,
            Role::Worker => Self::Worker(Keys::secrets_from_config(config).context("`secrets.keys`")?),
            Role::Operator if config.operator.keys_secret.is_empty() => {
                Self::Operator(Some(Keys::secrets_from_config(config).context("`secrets.keys`")?))
            }
            Role::Operator => Self::Operator(None),
        })
    }
}

/// Runs a role until it is told to stop and has drained.
pub async fn run(role: Role, mut config: Config) -> anyhow::Result<()> {
    telemetry::init(&config.telemetry)?;
    open_files::bound_connections(&mut config);
    let keys = RoleKeys::of(role, &config)?;
    let readiness = Readiness::default();
    readiness.set_not_ready(START, "it has not begun");
    readiness.set_not_ready("postgres", "the schema was not checked yet");
    let shutdown = Shutdown::on_signals()?;
    let admin = AdminServer::bind(&config.admin, readiness.clone(), telemetry::metrics_handle()?).await?;
    let admin = tokio::spawn(admin.run(shutdown.clone()));

    let store = Store::connect(config.postgres.url.expose(), config.postgres.pool, role.application_name())
        .context("`postgres.url` is not a Postgres URL")?;
    let ran = match shutdown.drain.run_until_cancelled(wait_for_schema(&store, &readiness)).await {
        None => Ok(()),
        Some(Err(error)) => Err(error),
        Some(Ok(())) => work(Arc::new(config), store, keys, readiness, shutdown.clone()).await,
    };
    shutdown.stop.cancel();
    ran.and(admin.await.context("the admin server panicked")?)
}

/// Returns when Postgres answers and has the schema of this program.
async fn wait_for_schema(store: &Store, readiness: &Readiness) -> anyhow::Result<()> {
    loop {
        match store.check_schema().await {
            Ok(()) => {
                readiness.set_ready("postgres");
                return Ok(());
            }
            Err(SchemaError::Store(error)) if error.is_unavailable() => {
                readiness.set_not_ready("postgres", "it does not answer");
                tracing::warn!(%error, "waiting for Postgres");
                tokio::time::sleep(RETRY).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

async fn work(
    config: Arc<Config>,
    store: Store,
    keys: RoleKeys,
    readiness: Readiness,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    store.record_free_class(config.retention.free_hours).await?;
    let clock = Arc::new(SystemClock::default());
    clock_sync::measure(&store, &clock, &readiness).await?;
    tokio::spawn(clock_sync::run(store.clone(), clock.clone(), readiness.clone(), shutdown.stop.clone()));
    let bus = bus::connect(&config, &store).await?;
    let ran = match keys {
        RoleKeys::Operator(secrets) => {
            let client = kube::Client::try_default()
                .await
                .context("no cluster: neither a service account nor KUBECONFIG tells of one")?;
            let secrets = match secrets {
                Some(secrets) => Some(secrets),
                None => {
                    let keys = platform_keys(&client, &config.operator.keys_secret, &readiness);
                    shutdown.drain.run_until_cancelled(keys).await.transpose()?
                }
            };
            match secrets {
                // It was told to stop.
                None => Ok(()),
                Some(secrets) => {
                    readiness.set_ready(START);
                    let operator = Operator::new(config, store, clock, secrets, client);
                    operator.with_readiness(readiness).run(shutdown).await
                }
            }
        }
        RoleKeys::Worker(secrets) => {
            let worker = Worker::new(config, store, clock)
                .with_webhooks(bus.clone(), &secrets)?
                .with_readiness(readiness.clone());
            readiness.set_ready(START);
            worker.run(shutdown).await
        }
        RoleKeys::Ingest => {
            let ingest = Ingest::bind(config, store, bus.clone(), clock, readiness.clone()).await?;
            readiness.set_ready(START);
            ingest.run(shutdown).await
        }
        RoleKeys::Api(keys) => {
            let server = ApiServer::bind(config, store, bus.clone(), clock, keys, readiness.clone()).await?;
            readiness.set_ready(START);
            tracing::info!(listen = %server.local_addr(), "answering HTTP");
            server.run(shutdown).await
        }
    };
    bus.close().await;
    ran
}
