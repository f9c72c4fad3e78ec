//! `tempmail api`, `ingest`, `worker` and `operator`: a process with one role.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tempmail_model::clock::SystemClock;
use tempmail_model::key::MasterKey;
use tempmail_operator::{kubernetes_client, platform_keys};
use tempmail_runtime::admin::AdminServer;
use tempmail_runtime::config::Config;
use tempmail_runtime::keys::Keys;
use tempmail_runtime::readiness::Readiness;
use tempmail_runtime::shutdown::Shutdown;
use tempmail_runtime::{telemetry, traces};
use tempmail_store::{GroupRole, SchemaDefinition, SchemaError, Store};
use uuid::Uuid;

use crate::process::open_files::{self, Server};
use crate::process::{clock_sync, connect_bus};
use crate::roles::{RoleContext, Roles};

/// Where the configuration of a role comes from.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// YAML file with settings; `TEMPMAIL_…` environment variables override it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl ConfigArgs {
    /// Loads the configuration, which must name a database.
    ///
    /// # Errors
    /// It can't be read, or `postgres.url` is not set.
    pub(crate) fn load(&self) -> anyhow::Result<Config> {
        let config = Config::load(self.config.as_deref())?;
        anyhow::ensure!(
            !config.postgres.url.is_empty(),
            "`postgres.url` is not set: set it in the file of --config, or set TEMPMAIL_POSTGRES__URL"
        );
        Ok(config)
    }
}

/// Time between two attempts to reach Postgres at the start, and how long a statement of one may take.
const RETRY: Duration = Duration::from_secs(1);
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// The component in `/readyz` until the role is built, and reports for itself.
const START: &str = "start";

/// The role of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
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
    /// Its subcommand.
    fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Ingest => "ingest",
            Self::Worker => "worker",
            Self::Operator => "operator",
        }
    }

    /// The `application_name` of the process in Postgres.
    fn application_name(self) -> String {
        format!("tempmail-{}", self.name())
    }

    /// The servers that clients connect to.
    fn servers(self) -> &'static [Server] {
        match self {
            Self::Api => &[Server::Http],
            Self::Ingest => &[Server::Smtp],
            Self::Worker | Self::Operator => &[],
        }
    }

    /// The group role with the rights that it needs.
    fn group(self) -> GroupRole {
        match self {
            Self::Api => GroupRole::Api,
            Self::Ingest => GroupRole::Ingest,
            Self::Worker => GroupRole::Worker,
            Self::Operator => GroupRole::Operator,
        }
    }
}

/// A role with the keys that it needs, and no others.
enum RoleKeys {
    Api(Keys),
    Ingest,
    /// `secrets.keys`, which decrypt the secrets of webhooks.
    Worker(Vec<MasterKey>),
    /// `secrets.keys`, which encrypt the secrets of webhooks, and the cluster whose Secret they may come from.
    Operator(Vec<MasterKey>, kube::Client),
}

impl RoleKeys {
    /// Those of the configuration. Those of a Secret, which are created where they are missing, are waited for.
    async fn obtain(role: Role, config: &Config, readiness: &Readiness) -> anyhow::Result<Self> {
        Ok(match role {
            Role::Api => Self::Api(Keys::from_config(config).context("`jwt.keys` and `secrets.keys`")?),
            Role::Ingest => Self::Ingest,
            Role::Worker => Self::Worker(Keys::secrets_from_config(config).context("`secrets.keys`")?),
            Role::Operator => {
                let client = kubernetes_client().await.context(
                    "there is no Kubernetes cluster: run in a pod with a service account, or set KUBECONFIG",
                )?;
                let keys = match config.operator.keys_secret.as_str() {
                    "" => Keys::secrets_from_config(config).context("`secrets.keys`")?,
                    secret => platform_keys(&client, secret, readiness).await?,
                };
                Self::Operator(keys, client)
            }
        })
    }
}

/// Runs a role until a signal stops the process and the role has drained.
pub(crate) async fn run(role: Role, mut config: Config, schema: &SchemaDefinition) -> anyhow::Result<()> {
    telemetry::init(&config)?;
    // First of all, so that no metric is missed.
    let metrics = telemetry::metrics_handle()?;
    traces::start(&config.telemetry, role.name())?;
    open_files::limit_connections(&mut config, role.servers());
    let readiness = Readiness::default();
    readiness.set_not_ready(START, "the role has not started yet");
    readiness.set_not_ready("postgres", "the schema has not been checked yet");
    let shutdown = Shutdown::on_signals()?;
    let admin = AdminServer::bind(&config.admin, readiness.clone(), metrics).await?;
    let admin = tokio::spawn(admin.run(shutdown.clone()));

    let store = Store::connect(config.postgres.url.expose(), config.postgres.pool, &role.application_name())
        .context("`postgres.url` is not a Postgres URL")?;
    let start = Start { role, schema, config: Arc::new(config), store, readiness };
    // The keys first: pods of the other roles wait for the Secret of the operator, whether Postgres answers or not.
    let started = async {
        let keys = RoleKeys::obtain(role, &start.config, &start.readiness).await?;
        anyhow::Ok((keys, start.wait_for_database().await?))
    };
    let ran = match shutdown.drain.run_until_cancelled(started).await {
        None => Ok(()),
        Some(Err(error)) => Err(error),
        Some(Ok((keys, database))) => start.serve(database, keys, &shutdown).await,
    };
    traces::finish().await;
    shutdown.stop.cancel();
    ran.and(admin.await.context("the admin server panicked")?)
}

/// What a role has at its start.
struct Start<'s> {
    role: Role,
    schema: &'s SchemaDefinition,
    config: Arc<Config>,
    store: Store,
    readiness: Readiness,
}

/// What a role reads of its database before it serves.
struct StartDatabase {
    clock: Arc<SystemClock>,
    stream: Uuid,
}

impl Start<'_> {
    /// Returns when Postgres answers and has the schema of this program, and the login has the rights of the role:
    /// Postgres may be starting, and `migrate` may still be running.
    async fn wait_for_database(&self) -> anyhow::Result<StartDatabase> {
        loop {
            let error = match self.prepare_database().await {
                Ok(database) => {
                    self.readiness.set_ready("postgres");
                    return Ok(database);
                }
                Err(error) => error,
            };
            let awaited = match &error {
                SchemaError::Store(error) if error.is_unavailable() => "Postgres",
                SchemaError::Store(error) if error.is_denied() => "a migration",
                SchemaError::Older { .. } | SchemaError::LacksRight { .. } => "a migration",
                _ => return Err(error.into()),
            };
            tracing::warn!("waiting for {awaited}: {error}");
            self.readiness.set_not_ready("postgres", error.to_string());
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Checks the schema and the rights, and synchronizes the clock.
    async fn prepare_database(&self) -> Result<StartDatabase, SchemaError> {
        let store = self.store.within(CHECK_TIMEOUT);
        self.schema.check(&store).await?;
        store.check_rights(self.role.group(), &self.config.postgres.role_prefix).await?;
        // The operator neither stores mail nor reads it.
        if self.role != Role::Operator {
            store.record_free_class(self.config.retention.free_hours).await?;
        }
        let clock = Arc::new(SystemClock::default());
        clock_sync::measure(&store, &clock, &self.readiness).await?;
        Ok(StartDatabase { clock, stream: store.stream_id().await? })
    }

    /// Builds the role and runs it.
    async fn serve(self, database: StartDatabase, keys: RoleKeys, shutdown: &Shutdown) -> anyhow::Result<()> {
        let Self { config, store, readiness, .. } = self;
        let StartDatabase { clock, stream } = database;
        tokio::spawn(clock_sync::run(store.clone(), clock.clone(), readiness.clone(), shutdown.stop.clone()));
        let bus = connect_bus(&config, stream).await?;
        let roles =
            Roles::new(RoleContext { config: config.clone(), bus, clock, readiness: readiness.clone() });
        let roles = match keys {
            RoleKeys::Api(keys) => roles.with_api(store, keys).await?,
            RoleKeys::Ingest => roles.with_ingest(store).await?,
            RoleKeys::Worker(keys) => roles.with_worker(store, &keys)?,
            RoleKeys::Operator(keys, client) => roles.with_operator(store, keys, client),
        };
        readiness.set_ready(START);
        roles.run(shutdown.clone()).await
    }
}
