//! The operator: reconciles custom resources with the rows in Postgres, and reports in their status.
//!
//! Postgres is the source of truth. An object is bound to its row by its uid. A reconciliation observes the
//! object, its row and its Secret, carries out one step and observes again, until nothing is left to do, so
//! the process may be killed between any two steps.

mod client;
mod crd_wait;
mod error;
mod kind;
mod kinds;
mod leader;
mod leader_election;
mod lost_grants;
mod namespace_watch;
mod password;
mod platform_keys;
mod reconcile;
mod row_watch;
mod status;

use std::sync::Arc;

use anyhow::Context as _;
use kube::Client;
use tempmail_model::clock::Clock;
use tempmail_model::key::MasterKey;
use tempmail_runtime::config::Config;
use tempmail_runtime::readiness::Readiness;
use tempmail_runtime::role::RoleFuture;
use tempmail_runtime::shutdown::Shutdown;
use tempmail_store::Store;
use tempmail_verification::verify_token_key;

use crate::leader::Dependencies;
use crate::leader_election::LeaderElection;

pub use client::kubernetes_client;
pub use platform_keys::platform_keys;
pub use status::{ConditionType, Reason, reason_reference};

/// The role that reconciles custom resources.
pub struct Operator {
    dependencies: Dependencies,
    readiness: Readiness,
}

impl Operator {
    /// An operator of the cluster of `client`, over a database whose schema is up to date. `keys` are those
    /// of `secrets.keys`.
    pub fn new(
        config: Arc<Config>,
        store: Store,
        clock: Arc<dyn Clock>,
        keys: Vec<MasterKey>,
        client: Client,
    ) -> Self {
        let dependencies = Dependencies { config, store, clock, keys, client };
        Self { dependencies, readiness: Readiness::default() }
    }

    /// Reports in `readiness` what the operator waits for.
    #[must_use]
    pub fn with_readiness(self, readiness: Readiness) -> Self {
        Self { readiness, ..self }
    }

    /// Waits until this operator leads, and reconciles until `shutdown` drains. Running reconciliations are
    /// finished, and the lease is released.
    ///
    /// # Errors
    /// Another operator became the leader: the process should end and be restarted. Postgres does not answer, the API server
    /// does not until this operator competes to lead, or the keys can't open what the store keeps.
    pub fn run(self, shutdown: Shutdown) -> RoleFuture {
        Box::pin(self.serve(shutdown))
    }

    async fn serve(self, shutdown: Shutdown) -> anyhow::Result<()> {
        let Self { dependencies, readiness } = self;
        let verify_tokens = verify_token_key(&dependencies.store, &dependencies.keys).await?;
        let namespaces = &dependencies.config.operator.watch_namespaces;
        let Some(()) = shutdown
            .drain
            .run_until_cancelled(crd_wait::wait_for_crds(&dependencies.client, namespaces, &readiness))
            .await
        else {
            return Ok(());
        };
        // Before it leads: a leader whose API server does not answer for a moment goes on.
        let cluster = leader_election::cluster_id(&dependencies.client).await?;
        let election = LeaderElection::join(&dependencies.client, &dependencies.config.operator)
            .await
            .context("the lease of the leader")?;
        election
            .lead(&shutdown, |stop| leader::run(dependencies, cluster, verify_tokens, readiness, stop))
            .await
    }
}
