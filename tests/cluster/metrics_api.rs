//! A stand-in for an adapter of metrics, such as prometheus-adapter: the custom metrics API of Kubernetes, served by the
//! test. It has no Prometheus: it reads `/metrics` of the pods at the moment when it is asked.

use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Client};
use serde::Deserialize;
use serde_json::{Value, json};
use tempmail_model::clock::{Clock as _, SystemClock};
use tempmail_tests::kubernetes::program;
use tempmail_tests::receiver::{Identity, Reaction, TlsListener, ca_file};
use tempmail_tests::{http, metrics};
use tokio::task::JoinHandle;

use crate::installation::{NAMESPACE, apply, run};

/// On this machine's end of the link to the node.
const ADDRESS: ([u8; 4], u16) = ([10, 250, 0, 1], 8443);
/// The Service by which the API server finds it.
const SERVICE: &str = "custom-metrics";
const API_SERVICE: &str = "apiservice/v1beta2.custom.metrics.k8s.io";
/// Metrics that the chart's HorizontalPodAutoscalers ask for.
const METRICS: [&str; 2] = ["tempmail_subscribers", "tempmail_smtp_connections"];
/// Port of a pod's `/metrics`.
const ADMIN_PORT: u16 = 9090;
/// How long a pod may take to answer. One that does not has no value.
const PATIENCE: Duration = Duration::from_secs(2);

/// The custom metrics API, until it is dropped.
pub(crate) struct MetricsApi {
    task: JoinHandle<()>,
}

impl MetricsApi {
    /// Serves it, and waits until the API server of the node finds it.
    pub(crate) async fn start() -> Self {
        let address = SocketAddr::from(ADDRESS);
        let identity = Identity::issued_for(&[&format!("{SERVICE}.{NAMESPACE}.svc")]);
        let listener = TlsListener::bind(address, &identity, || Reaction::Status(200)).await;
        let pods = PodMetrics {
            client: Client::try_default().await.expect("$KUBECONFIG is that of the node"),
            http: http::client(),
        };
        let group = "/apis/custom.metrics.k8s.io/v1beta2";
        let router = Router::new()
            .route(group, get(list_resources))
            .route(&format!("{group}/namespaces/{{namespace}}/pods/{{pod}}/{{metric}}"), get(measure_pods))
            .with_state(pods);
        let task = tokio::spawn(async move {
            let _ = axum::serve(listener, router).await;
        });
        let api = Self { task };
        register(address).await;
        api
    }
}

impl Drop for MetricsApi {
    /// An API that is registered and not served would break discovery for all clients.
    fn drop(&mut self) {
        let delete = std::process::Command::new(program("kubectl")).args(["delete", API_SERVICE]).status();
        if !delete.is_ok_and(|status| status.success()) {
            println!("{API_SERVICE} could not be deleted");
        }
        self.task.abort();
    }
}

/// Tells the API server where the API is, and by whom its certificate was issued.
async fn register(address: SocketAddr) {
    apply(&json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": SERVICE, "namespace": NAMESPACE},
        "spec": {"ports": [{"name": "https", "port": 443, "targetPort": address.port()}]},
    }))
    .await;
    apply(&json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "name": SERVICE, "namespace": NAMESPACE, "labels": {"kubernetes.io/service-name": SERVICE},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address.ip()]}],
        "ports": [{"name": "https", "port": address.port(), "protocol": "TCP"}],
    }))
    .await;
    let authority = std::fs::read(ca_file()).expect("the authority's certificate is there");
    apply(&json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1beta2.custom.metrics.k8s.io"},
        "spec": {
            "group": "custom.metrics.k8s.io", "version": "v1beta2",
            "groupPriorityMinimum": 100, "versionPriority": 100,
            "service": {"namespace": NAMESPACE, "name": SERVICE, "port": 443},
            "caBundle": STANDARD.encode(authority),
        },
    }))
    .await;
    run("kubectl", &["wait", API_SERVICE, "--for=condition=Available", "--timeout=180s"]).await;
}

/// Where the metrics come from.
#[derive(Clone)]
struct PodMetrics {
    client: Client,
    http: reqwest::Client,
}

impl PodMetrics {
    /// A metric of a pod, as the API describes it; `None` if the pod does not answer.
    async fn measure(&self, pod: &Pod, metric: &str) -> Option<Value> {
        let ip = pod.status.as_ref()?.pod_ip.as_ref()?;
        let request = self.http.get(format!("http://{ip}:{ADMIN_PORT}/metrics")).timeout(PATIENCE);
        let metrics = request.send().await.ok()?.error_for_status().ok()?.text().await.ok()?;
        Some(json!({
            "describedObject": {
                "apiVersion": "v1", "kind": "Pod",
                "namespace": pod.metadata.namespace, "name": pod.metadata.name,
            },
            "metric": {"name": metric},
            "timestamp": SystemClock::default().now().to_string(),
            "value": metrics::sum(&metrics, metric).to_string(),
        }))
    }
}

async fn list_resources() -> Json<Value> {
    let resources = METRICS.map(|metric| {
        json!({
            "name": format!("pods/{metric}"), "singularName": "", "namespaced": true,
            "kind": "MetricValueList", "verbs": ["get"],
        })
    });
    Json(json!({
        "kind": "APIResourceList", "apiVersion": "v1",
        "groupVersion": "custom.metrics.k8s.io/v1beta2", "resources": resources,
    }))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodSelector {
    label_selector: String,
}

/// A metric of all pods with these labels: the name in the path is `*`.
async fn measure_pods(
    State(pods): State<PodMetrics>,
    Path((namespace, _, metric)): Path<(String, String, String)>,
    Query(selector): Query<PodSelector>,
) -> Result<Json<Value>, StatusCode> {
    let selected = ListParams::default().labels(&selector.label_selector);
    let listed = Api::<Pod>::namespaced(pods.client.clone(), &namespace).list(&selected).await;
    let listed = listed.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    let values = join_all(listed.iter().map(|pod| pods.measure(pod, &metric))).await;
    Ok(Json(json!({
        "kind": "MetricValueList", "apiVersion": "custom.metrics.k8s.io/v1beta2", "metadata": {},
        "items": values.into_iter().flatten().collect::<Vec<_>>(),
    })))
}
