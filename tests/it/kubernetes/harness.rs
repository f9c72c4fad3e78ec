//! The harness of the Kubernetes tests: clusters, and the proxy before an API server.

mod cluster;
mod proxy;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;

/// An object to create.
fn config_map(name: &str) -> ConfigMap {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let data = BTreeMap::from([("colour".to_owned(), "blue".to_owned())]);
    ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }
}
