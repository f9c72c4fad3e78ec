//! Waits until the API server serves the custom resources.

use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use kube::Client;
use kube::api::ListParams;
use tempmail_runtime::readiness::Readiness;

use crate::kind::{Kind, watched_apis};
use crate::kinds::{KindVisitor, visit_kinds};
use crate::reconcile::driver::Reconcile;

/// Interval between checks.
const INTERVAL: Duration = Duration::from_secs(2);
/// Component of `/readyz`.
const COMPONENT: &str = "kubernetes";

/// The checks of all kinds.
struct Checks<'a> {
    client: &'a Client,
    namespaces: &'a [String],
    checks: Vec<BoxFuture<'a, Option<String>>>,
}

impl KindVisitor for Checks<'_> {
    fn visit<K: Reconcile>(&mut self) {
        self.checks.push(missing::<K>(self.client, self.namespaces).boxed());
    }
}

/// Returns when the API server serves all kinds, and the operator may list them in one of these namespaces,
/// or in the whole cluster if there are none.
pub(crate) async fn wait_for_crds(client: &Client, namespaces: &[String], readiness: &Readiness) {
    loop {
        let mut all = Checks { client, namespaces, checks: Vec::new() };
        visit_kinds(&mut all);
        let mut missing = Vec::new();
        for check in all.checks {
            missing.extend(check.await);
        }
        metrics::gauge!("tempmail_operator_crd_missing")
            .set(u32::try_from(missing.len()).unwrap_or(u32::MAX));
        if missing.is_empty() {
            readiness.set_ready(COMPONENT);
            return;
        }
        let message =
            format!("the API server does not serve {}: install the chart tempmail-crds", missing.join(", "));
        tracing::warn!("{message}");
        readiness.set_not_ready(COMPONENT, message);
        tokio::time::sleep(INTERVAL).await;
    }
}

/// The kind, with the reason, if it can't be listed. One namespace that can be listed is enough: those who may
/// remove the operator's rights from another must not stop it for all.
async fn missing<K: Kind>(client: &Client, namespaces: &[String]) -> Option<String> {
    let plural = K::plural(&());
    let mut reason = String::new();
    for api in watched_apis::<K>(client, namespaces) {
        reason = match api.list(&ListParams::default().limit(1)).await {
            Ok(_) => return None,
            Err(kube::Error::Api(status)) if status.is_not_found() => return Some(plural.into_owned()),
            Err(kube::Error::Api(status)) => status.reason.clone(),
            Err(_unreachable) => "the API server is unreachable".to_owned(),
        };
    }
    Some(format!("{plural} ({reason})"))
}
