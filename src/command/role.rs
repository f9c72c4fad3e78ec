//! `tempmail api`, `ingest`, `worker` and `operator`: a process with one role.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
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

use crate::process::open_files::{self, Server};
use crate::process::{bus, clock_sync};
use crate::roles::{RoleContext, Roles};

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
    /// `secrets.keys`, which encrypt the secrets of webhooks; `None` where they come from a Secret.
    Operator(Option<Vec<MasterKey>>),
}

impl RoleKeys {
    fn from_config(role: Role, config: &Config) -> anyhow::Result<Self> {
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

/// Runs a role until a signal stops the process and the role has drained.
pub(crate) async fn run(role: Role, mut config: Config, schema: &SchemaDefinition) -> anyhow::Result<()> {
    telemetry::init(&config.telemetry)?;
    // First of all, so that no metric is missed.
    let metrics = telemetry::metrics_handle()?;
    traces::start(&config.telemetry, role.name())?;
    open_files::limit_connections(&mut config, role.servers());
    let keys = RoleKeys::from_config(role, &config)?;
    let readiness = Readiness::default();
    readiness.set_not_ready(START, "the role has not started yet");
    readiness.set_not_ready("postgres", "the schema has not been checked yet");
    let shutdown = Shutdown::on_signals()?;
    let admin = AdminServer::bind(&config.admin, readiness.clone(), metrics).await?;
    let admin = tokio::spawn(admin.run(shutdown.clone()));

    let store = Store::connect(config.postgres.url.expose(), config.postgres.pool, &role.application_name())
        .context("`postgres.url` is not a Postgres URL")?;
    let schema = wait_for_schema(&store, schema, role, &config, &readiness);
    let ran = match shutdown.drain.run_until_cancelled(schema).await {
        None => Ok(()),
        Some(Err(error)) => Err(error),
        Some(Ok(())) => serve(Arc::new(config), store, keys, readiness, &shutdown).await,
    };
    traces::finish().await;
    shutdown.stop.cancel();
    ran.and(admin.await.context("the admin server panicked")?)
}

/// Returns when Postgres answers and has the schema of this program, and the login has the rights of the role: `migrate`
/// may still be running.
async fn wait_for_schema(
    store: &Store,
    schema: &SchemaDefinition,
    role: Role,
    config: &Config,
    readiness: &Readiness,
) -> anyhow::Result<()> {
    let store = &store.within(CHECK_TIMEOUT);
    let check = async || {
        schema.check(store).await?;
        store.check_rights(role.group(), &config.postgres.role_prefix).await
    };
    loop {
        match check().await {
            Ok(()) => {
                readiness.set_ready("postgres");
                return Ok(());
            }
            Err(SchemaError::Store(error)) if error.is_unavailable() => {
                readiness.set_not_ready("postgres", error.to_string());
                tracing::warn!(%error, "waiting for Postgres");
                tokio::time::sleep(RETRY).await;
            }
            Err(SchemaError::Store(error)) if error.is_denied() => {
                readiness.set_not_ready("postgres", error.to_string());
                tracing::warn!("waiting for a migration: {error}");
                tokio::time::sleep(RETRY).await;
            }
            Err(error @ (SchemaError::Older { .. } | SchemaError::LacksRight { .. })) => {
                readiness.set_not_ready("postgres", error.to_string());
                tracing::warn!("waiting for a migration: {error}");
                tokio::time::sleep(RETRY).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Synchronizes the clock, builds the role and runs it.
async fn serve(
    config: Arc<Config>,
    store: Store,
    keys: RoleKeys,
    readiness: Readiness,
    shutdown: &Shutdown,
) -> anyhow::Result<()> {
    // The operator neither stores mail nor reads it.
    if !matches!(keys, RoleKeys::Operator(_)) {
        store.record_free_class(config.retention.free_hours).await?;
    }
    let clock = Arc::new(SystemClock::default());
    clock_sync::measure(&store, &clock, &readiness).await?;
    tokio::spawn(clock_sync::run(store.clone(), clock.clone(), readiness.clone(), shutdown.stop.clone()));
    let bus = bus::connect(&config, &store).await?;
    let roles = Roles::new(RoleContext { config: config.clone(), bus, clock, readiness: readiness.clone() });
    let roles = match keys {
        RoleKeys::Api(keys) => roles.with_api(store, keys).await?,
        RoleKeys::Ingest => roles.with_ingest(store).await?,
        RoleKeys::Worker(keys) => roles.with_worker(store, &keys)?,
        RoleKeys::Operator(keys) => {
            let client = kubernetes_client().await.context(
                "there is no Kubernetes cluster: run in a pod with a service account, or set KUBECONFIG",
            )?;
            let keys = match keys {
                Some(keys) => keys,
                None => {
                    let keys = platform_keys(&client, &config.operator.keys_secret, &readiness);
                    let Some(keys) = shutdown.drain.run_until_cancelled(keys).await else { return Ok(()) };
                    keys?
                }
            };
            roles.with_operator(store, keys, client)
        }
    };
    readiness.set_ready(START);
    roles.run(shutdown.clone()).await
}
