//! Operators as processes of their own, which a test kills, stops and starts again.

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::DeleteParams;
use nix::sys::signal::Signal;
use tempmail_runtime::config::Config;

use super::cluster::Cluster;
use super::installation::Installation;
use super::proxy::ApiProxy;
use crate::fleet::{Role, RoleProcess, environment};
use crate::http;
use crate::process::wait_until_gone;
use crate::wait::eventually;

/// `tempmail operator`. It is killed when the last of its clones is dropped.
#[derive(Debug, Clone)]
pub struct OperatorProcess(Arc<RoleProcess>);

impl OperatorProcess {
    /// Starts one over the database and with the settings of an installation, and returns when it is
    /// ready: it may not lead yet.
    ///
    /// # Panics
    /// It ends or hangs instead.
    pub async fn start(installation: &Installation<Cluster>) -> Self {
        Self::start_with(installation, installation.cluster.kubeconfig()).await
    }

    /// Starts one, and returns when it is the leader.
    ///
    /// # Panics
    /// It never is.
    pub async fn start_leader(installation: &Installation<Cluster>) -> Self {
        let operator = Self::start(installation).await;
        operator.wait_until_leader().await;
        operator
    }

    /// Starts one that reaches the API server through a proxy, and returns when it is the leader.
    ///
    /// # Panics
    /// It never is.
    pub async fn start_leader_behind(proxy: &ApiProxy, installation: &Installation<Cluster>) -> Self {
        let operator = Self::start_with(installation, &proxy.kubeconfig()).await;
        operator.wait_until_leader().await;
        operator
    }

    async fn start_with(installation: &Installation<Cluster>, kubeconfig: &Path) -> Self {
        let app = &installation.app;
        let operator = Self::spawn(app.config(), &app.database().role_url(Role::Operator), kubeconfig);
        operator.wait_until_started().await;
        operator
    }

    /// Starts one with these settings over the database of a URL; does not wait for it.
    pub fn spawn(config: &Config, database: &str, kubeconfig: &Path) -> Self {
        let mut environment = environment::of(config, Role::Operator);
        let kubeconfig = kubeconfig.to_str().expect("the path is UTF-8");
        let own = [("TEMPMAIL_POSTGRES__URL", database), ("KUBECONFIG", kubeconfig)];
        environment.extend(own.map(|(name, value)| (name.to_owned(), value.to_owned())));
        Self(Arc::new(RoleProcess::start(Role::Operator, environment, http::client())))
    }

    /// Returns when it is the leader.
    ///
    /// # Panics
    /// It never is.
    pub async fn wait_until_leader(&self) {
        eventually("an operator is the leader", || async { self.is_leader().await.then_some(()) }).await;
    }

    /// Whether it is the leader.
    ///
    /// # Panics
    /// It does not answer.
    pub async fn is_leader(&self) -> bool {
        self.metric("tempmail_operator_leads").await > 0.0
    }

    /// A function for [`ApiProxy::stop_at_write`] that kills it with `kill -9`, and returns when it is
    /// gone.
    pub fn killer(&self) -> impl FnOnce() + Send + use<> {
        let operator = self.clone();
        move || {
            let process = operator.pid();
            operator.signal(Signal::SIGKILL);
            wait_until_gone(&[process]);
        }
    }

    /// Starts it again after it was killed, and returns when it is the leader. Its lease is deleted first,
    /// so that the test does not wait for the end of the lease.
    ///
    /// # Panics
    /// It never is.
    pub async fn restart_as_leader(&self, installation: &Installation<Cluster>) {
        let leases: Api<Lease> = Api::default_namespaced(installation.cluster.client());
        let lease = &installation.app.config().operator.lease_name;
        let _ = leases.delete(lease, &DeleteParams::default()).await;
        self.restart().await;
        self.wait_until_leader().await;
    }
}

impl Deref for OperatorProcess {
    type Target = RoleProcess;

    fn deref(&self) -> &RoleProcess {
        &self.0
    }
}
