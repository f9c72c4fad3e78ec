//! The operator: makes what custom resources say true, and says in their status what is.
//!
//! Postgres is the only truth here as elsewhere. An object is bound to its row by its uid; a
//! reconciliation looks at the object, its row and its Secret, decides on one step, carries it out
//! and looks again, until nothing is left to do. So it may be killed between any two steps.

mod api_token;
mod backoff;
mod context;
mod controller;
mod custom_domain;
mod event;
mod failure;
mod finalizer;
mod identity;
mod invalid;
mod kind;
mod lease;
mod mailbox;
mod mirror;
mod orphan;
mod platform_keys;
mod secret;
mod standing;
mod status;
mod system_domain;
mod tenancy;
mod tenant;
mod trigger;
mod webhook;

use std::sync::Arc;

use anyhow::Context as _;
use kube::Client;
use tempmail_model::clock::Clock;
use tempmail_model::key::MasterKey;
use tempmail_runtime::config::Config;
use tempmail_runtime::readiness::Readiness;
use tempmail_runtime::shutdown::Shutdown;
use tempmail_store::Store;

pub use platform_keys::platform_keys;
pub use standing::{ConditionType, Reason};

/// The role that reconciles.
pub struct Operator {
    config: Arc<Config>,
    store: Store,
    clock: Arc<dyn Clock>,
    keys: Vec<MasterKey>,
    client: Client,
    readiness: Readiness,
}

impl Operator {
    /// An operator of the cluster that `client` reaches, over a database whose schema is up to date.
    /// `keys` are those of `secrets.keys`.
    pub fn new(
        config: Arc<Config>,
        store: Store,
        clock: Arc<dyn Clock>,
        keys: Vec<MasterKey>,
        client: Client,
    ) -> Self {
        Self { config, store, clock, keys, client, readiness: Readiness::default() }
    }

    /// Shows in `readiness` what it waits for.
    #[must_use]
    pub fn with_readiness(self, readiness: Readiness) -> Self {
        Self { readiness, ..self }
    }

    /// Waits until it leads, and reconciles until `shutdown` asks to drain; what is in hand is
    /// finished, and the lease given back.
    ///
    /// # Errors
    /// It leads no longer, although nobody asked it to end: the process should end, and begin anew.
    pub async fn run(self, shutdown: Shutdown) -> anyhow::Result<()> {
        let Some(()) = shutdown
            .drain
            .run_until_cancelled(kind::wait_for_definitions(&self.client, &self.readiness))
            .await
        else {
            return Ok(());
        };
        let client = self.client.clone();
        let lease =
            lease::Lease::join(&client, &self.config.operator).await.context("the lease of the leader")?;
        lease.lead(&shutdown, |stop| self.reconcile(stop)).await
    }

    /// Reconciles until `stop` is cancelled, or until somebody else leads.
    async fn reconcile(self, stop: tokio_util::sync::CancellationToken) -> anyhow::Result<()> {
        let context = context::Context::begin(self).await?;
        controller::run_all(context, stop).await
    }
}
