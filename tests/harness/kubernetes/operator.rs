//! Operators as processes of their own, which a test kills, stops and starts again.

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::DeleteParams;
use nix::sys::signal::Signal;
use tempmail_runtime::config::Config;

use super::{Cluster, World};
use crate::App;
use crate::fleet::{Role, RoleProcess, environment};
use crate::http;
use crate::process::wait_until_gone;
use crate::wait::eventually;

/// `tempmail operator`. It is killed when the last of its clones is dropped.
#[derive(Debug, Clone)]
pub struct OperatorProcess(Arc<RoleProcess>);

impl OperatorProcess {
    /// Starts one over the database and with the settings of `app`, and returns when it is ready.
    /// It reaches the API server by this kubeconfig.
    ///
    /// # Panics
    /// It ends or hangs instead.
    pub async fn start(app: &App, kubeconfig: &Path) -> Self {
        let operator = Self::begin(app.config(), &app.database().url(), kubeconfig, &[]);
        operator.wait_until_started().await;
        operator
    }

    /// Starts one with these settings and further environment variables, over the database of a URL;
    /// does not wait for it.
    pub fn begin(config: &Config, database: &str, kubeconfig: &Path, variables: &[(&str, &str)]) -> Self {
        let mut environment = environment::of(config, Role::Operator);
        let kubeconfig = kubeconfig.to_str().expect("the path is UTF-8");
        let own = [("TEMPMAIL_POSTGRES__URL", database), ("KUBECONFIG", kubeconfig)];
        let all = own.into_iter().chain(variables.iter().copied());
        environment.extend(all.map(|(name, value)| (name.to_owned(), value.to_owned())));
        Self(Arc::new(RoleProcess::start(Role::Operator, environment, http::client())))
    }

    /// Returns when it leads.
    ///
    /// # Panics
    /// It never does.
    pub async fn comes_to_lead(&self) {
        eventually("an operator leads", || async { self.leads().await.then_some(()) }).await;
    }

    /// Whether it leads.
    ///
    /// # Panics
    /// It does not answer.
    pub async fn leads(&self) -> bool {
        self.metric("tempmail_operator_leads").await > 0.0
    }

    /// For [`ApiProxy::at_write`](super::ApiProxy::at_write): `kill -9`, which returns when it is gone.
    pub fn killer(&self) -> impl FnOnce() + Send + use<> {
        let operator = self.clone();
        move || {
            let process = operator.pid();
            operator.signal(Signal::SIGKILL);
            wait_until_gone(&[process]);
        }
    }

    /// Starts it again after it ended, and returns when it leads. The lease of the one that was
    /// killed is taken away first: nothing is learnt from waiting for its end.
    ///
    /// # Panics
    /// It never leads.
    pub async fn start_again(&self, world: &World<Cluster>) {
        let leases: Api<Lease> = Api::default_namespaced(world.cluster.client());
        let _ = leases.delete(&world.app.config().operator.lease_name, &DeleteParams::default()).await;
        self.restart().await;
        self.comes_to_lead().await;
    }
}

impl Deref for OperatorProcess {
    type Target = RoleProcess;

    fn deref(&self) -> &RoleProcess {
        &self.0
    }
}
