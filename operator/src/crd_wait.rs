//! Waits until the API server serves the custom resources.

use std::fmt::Debug;
use std::time::Duration;

use kube::api::ListParams;
use kube::core::DeserializeGuard;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tempmail_crds::{ApiToken, CustomDomain, Mailbox, SystemDomain, Tenant, Webhook};
use tempmail_runtime::readiness::Readiness;

/// Interval between checks.
const INTERVAL: Duration = Duration::from_secs(2);
/// Component of `/readyz`.
const COMPONENT: &str = "kubernetes";

/// Returns when the API server serves all kinds.
pub(crate) async fn wait_for_crds(client: &Client, readiness: &Readiness) {
    loop {
        let missing = [
            missing::<Tenant>(client).await,
            missing::<SystemDomain>(client).await,
            missing::<CustomDomain>(client).await,
            missing::<Webhook>(client).await,
            missing::<ApiToken>(client).await,
            missing::<Mailbox>(client).await,
        ];
        let missing: Vec<String> = missing.into_iter().flatten().collect();
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

/// The kind, with the reason, if it can't be listed.
async fn missing<K>(client: &Client) -> Option<String>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let api: Api<DeserializeGuard<K>> = Api::all(client.clone());
    let plural = K::plural(&());
    match api.list(&ListParams::default().limit(1)).await {
        Ok(_) => None,
        Err(kube::Error::Api(status)) if status.is_not_found() => Some(plural.into_owned()),
        Err(kube::Error::Api(status)) => Some(format!("{plural} ({})", status.reason)),
        Err(_unreachable) => Some(format!("{plural} (the API server is unreachable)")),
    }
}
