//! The roles of one process, wired together: the one place that knows what each role is built
//! from. The binary, the test harness and the benchmarks all start roles here.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use tempmail_api_server::{ApiServer, SignInLink};
use tempmail_bus::SharedBus;
use tempmail_mail_ingest::Ingest;
use tempmail_model::clock::Clock;
use tempmail_model::key::MasterKey;
use tempmail_model::surface::DropInSurface;
use tempmail_operator::Operator;
use tempmail_runtime::config::Config;
use tempmail_runtime::keys::Keys;
use tempmail_runtime::readiness::Readiness;
use tempmail_runtime::shutdown::Shutdown;
use tempmail_store::Store;
use tempmail_worker::Worker;
use tokio::task::JoinSet;

/// What all roles of a process share.
#[derive(Clone)]
pub struct RoleContext {
    /// The settings.
    pub config: Arc<Config>,
    /// Connects the roles with each other, and with those of other processes.
    pub bus: SharedBus,
    /// Business time.
    pub clock: Arc<dyn Clock>,
    /// What the process still waits for.
    pub readiness: Readiness,
}

/// The roles of a process, bound to their addresses and not yet running.
///
/// Each role is added with a [`Store`] of its own, so that slow readers can't use up the Postgres
/// connections that receive mail. The schema of the database must be up to date.
pub struct Roles {
    context: RoleContext,
    ingests: Vec<Ingest>,
    api: Option<ApiServer>,
    worker: Option<Worker>,
    operator: Option<Operator>,
}

impl Roles {
    /// A process without roles.
    pub fn new(context: RoleContext) -> Self {
        Self { context, ingests: Vec::new(), api: None, worker: None, operator: None }
    }

    /// Adds inbound SMTP and binds `smtp.listen`. May be called several times where the port is 0.
    ///
    /// # Errors
    /// The address can't be bound, or the certificate can't be read.
    pub async fn with_ingest(mut self, store: Store) -> anyhow::Result<Self> {
        let RoleContext { config, bus, clock, readiness } = self.context.clone();
        self.ingests.push(Ingest::bind(config, store, bus, clock, readiness).await?);
        Ok(self)
    }

    /// Adds the HTTP interface and binds `http.listen`, and the listeners of drop-in surfaces.
    ///
    /// # Errors
    /// The address can't be bound.
    pub async fn with_api(mut self, store: Store, keys: Keys) -> anyhow::Result<Self> {
        let RoleContext { config, bus, clock, readiness } = self.context.clone();
        self.api = Some(ApiServer::bind(config, store, bus, clock, keys, readiness).await?);
        Ok(self)
    }

    /// Signs in to the dashboard by a link, once. The HTTP interface must have been added.
    #[must_use]
    pub fn with_sign_in_link(mut self, link: SignInLink) -> Self {
        self.api = self.api.map(|api| api.with_sign_in_link(link));
        self
    }

    /// Adds background work and webhooks, whose secrets `keys` (`secrets.keys`) decrypt.
    ///
    /// # Errors
    /// `webhooks.ca_file` or the system's DNS servers can't be read.
    pub fn with_worker(mut self, store: Store, keys: &[MasterKey]) -> anyhow::Result<Self> {
        let RoleContext { config, bus, clock, readiness } = self.context.clone();
        let worker = Worker::new(config, store, clock).with_webhooks(bus, keys)?;
        self.worker = Some(worker.with_readiness(readiness));
        Ok(self)
    }

    /// Adds the operator of the Kubernetes cluster that `client` reaches; `keys` (`secrets.keys`)
    /// encrypt the secrets of webhooks.
    #[must_use]
    pub fn with_operator(mut self, store: Store, keys: Vec<MasterKey>, client: kube::Client) -> Self {
        let RoleContext { config, clock, readiness, .. } = self.context.clone();
        let operator = Operator::new(config, store, clock, keys, client);
        self.operator = Some(operator.with_readiness(readiness));
        self
    }

    /// The SMTP listeners, in the order in which they were added.
    pub fn smtp_addresses(&self) -> Vec<SocketAddr> {
        self.ingests.iter().map(Ingest::local_addr).collect()
    }

    /// The HTTP listener, if there is one.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.api.as_ref().map(ApiServer::local_addr)
    }

    /// The listener of a drop-in surface, if it has one.
    pub fn drop_in_address(&self, surface: DropInSurface) -> Option<SocketAddr> {
        self.api.as_ref().and_then(|api| api.drop_in_addr(surface))
    }

    /// Runs the roles until all of them have drained, then closes the bus. A role that ends early
    /// drains the others. Dropping the future aborts all roles.
    ///
    /// # Errors
    /// The first error of a role.
    pub async fn run(self, shutdown: Shutdown) -> anyhow::Result<()> {
        let mut running = JoinSet::new();
        for ingest in self.ingests {
            running.spawn(named("ingest", ingest.run(shutdown.clone())));
        }
        if let Some(api) = self.api {
            tracing::info!(listen = %api.local_addr(), "serving HTTP");
            for (surface, listen) in DropInSurface::ALL.map(|surface| (surface, api.drop_in_addr(surface))) {
                if let Some(listen) = listen {
                    tracing::info!(%listen, "serving the drop-in surface {}", surface.as_str());
                }
            }
            running.spawn(named("api", api.run(shutdown.clone())));
        }
        if let Some(worker) = self.worker {
            running.spawn(named("worker", worker.run(shutdown.clone())));
        }
        if let Some(operator) = self.operator {
            running.spawn(named("operator", operator.run(shutdown.clone())));
        }
        let mut result = Ok(());
        while let Some(ended) = running.join_next().await {
            result = result.and(ended.context("a role panicked").and_then(|ended| ended));
            shutdown.drain.cancel();
        }
        self.context.bus.close().await;
        result
    }
}

/// Adds the name of a role to its error.
async fn named(role: &'static str, running: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    running.await.context(role)
}
