//! The installation that `tests/cluster/check` leaves on the node.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use reqwest::Method;
use serde_json::{Value, json};
use tempmail_tests::http::{self, Request};
use tempmail_tests::kubernetes::program;
use tempmail_tests::receiver::ca_file;
use tempmail_tests::wait::eventually;
use tokio::process::Command;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::sleep;

/// Namespace of the chart's objects.
pub(crate) const NAMESPACE: &str = "tempmail-system";
/// Namespace of the resources of README.md.
const TEAM: &str = "team-a";
/// Requests at a time.
const CONCURRENT_REQUESTS: usize = 4;
/// There is one installation, and each test changes it.
static TURN: Mutex<()> = Mutex::const_new(());

/// The installation on the node of `$KUBECONFIG`, for one test at a time.
#[derive(Debug)]
pub(crate) struct NodeInstallation {
    /// Address of the Service of `api`.
    pub(crate) api: SocketAddr,
    /// Address of the Service of `ingest`.
    pub(crate) ingest: SocketAddr,
    /// A token for `/pro/api`.
    pro_token: String,
    _turn: MutexGuard<'static, ()>,
}

impl NodeInstallation {
    /// Finds it, and raises the limits of the tenant in README.md to those of the tests.
    pub(crate) async fn find() -> Self {
        let turn = TURN.lock().await;
        let limits = json!({"spec": {"limits": {"mailboxes": 1000, "tokens": 1000}}}).to_string();
        run("kubectl", &["patch", "tenants.tempmail.dev/acme", "--type=merge", "--patch", &limits]).await;
        let token = json!({
            "apiVersion": "tempmail.dev/v1alpha1", "kind": "ApiToken",
            "metadata": {"name": "load", "namespace": TEAM},
            "spec": {"tenantRef": {"name": "acme"}, "type": "Pro"},
        });
        apply(&token).await;
        let object = "apitokens.tempmail.dev/load";
        let wait = ["--namespace", TEAM, "wait", object, "--for=condition=Ready", "--timeout=120s"];
        run("kubectl", &wait).await;
        Self {
            api: service("tempmail-api", 80).await,
            ingest: service("tempmail-ingest", 25).await,
            pro_token: secret(TEAM, "load-token", "token").await,
            _turn: turn,
        }
    }

    /// Makes the workers trust this test's receiver, and returns the secret of the webhook in README.md.
    pub(crate) async fn use_receiver(&self) -> String {
        let authority = std::fs::read_to_string(ca_file()).expect("the authority's certificate is there");
        apply(&json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hooks-ca", "namespace": NAMESPACE},
            "stringData": {"ca.crt": authority},
        }))
        .await;
        self.kubectl(&["rollout", "restart", "deployment/tempmail-worker"]).await;
        self.wait_until_ready().await;
        secret(TEAM, "ci-webhook", "secret").await
    }

    /// Creates tokens for `/v1`.
    pub(crate) async fn live_tokens(&self, count: usize) -> Vec<String> {
        let create = |nth| async move {
            let token = json!({"name": format!("load {nth}"), "kind": "live"});
            let created = self.pro("/pro/api/tokens", &token).await;
            created["token"].as_str().expect("a new token is shown").to_owned()
        };
        stream::iter(0..count).map(create).buffered(CONCURRENT_REQUESTS).collect().await
    }

    /// Creates mailboxes of the tenant, and returns the JWT of each.
    pub(crate) async fn create_mailboxes(&self, addresses: &[String]) -> Vec<String> {
        let create = |address: String| async move {
            let mailbox = json!({"address": address, "password": "correct horse"});
            let created = self.pro("/api/accounts", &mailbox).await;
            created["token"].as_str().expect("a new mailbox has a JWT").to_owned()
        };
        stream::iter(addresses.to_vec()).map(create).buffered(CONCURRENT_REQUESTS).collect().await
    }

    async fn pro(&self, path: &str, body: &Value) -> Value {
        let (client, url) = (http::client(), format!("http://{}{path}", self.api));
        loop {
            let request = Request::new(&client, Method::POST, &url).bearer(&self.pro_token).json(body);
            let answer = request.send_until_available().await;
            if answer.status != 429 {
                return answer.expect(201);
            }
            // More than a tenant makes at a time.
            let seconds = answer.header("retry-after").parse().expect("Retry-After is a number");
            sleep(Duration::from_secs(seconds)).await;
        }
    }

    /// Pods of a component, as `pod/<name>`.
    pub(crate) async fn pods(&self, component: &str) -> Vec<String> {
        let label = format!("app.kubernetes.io/component={component}");
        let names = self.kubectl(&["get", "pods", "--selector", &label, "--output", "name"]).await;
        names.lines().map(str::to_owned).collect()
    }

    /// Runs `kubectl` in the namespace of the installation.
    pub(crate) async fn kubectl(&self, arguments: &[&str]) -> String {
        run("kubectl", &[&["--namespace", NAMESPACE], arguments].concat()).await
    }

    /// `helm upgrade` to the values of the installation, with further arguments.
    pub(crate) async fn upgrade(&self, arguments: &[&str]) {
        let chart = ["upgrade", "tempmail", "charts/tempmail", "--namespace", NAMESPACE];
        let values = ["--values", "tests/cluster/values.yaml"];
        run("helm", &[&chart[..], &values, arguments].concat()).await;
    }

    /// `helm rollback`.
    pub(crate) async fn rollback(&self) {
        run("helm", &["rollback", "tempmail", "--namespace", NAMESPACE]).await;
    }

    /// Waits until the migration of the current revision has succeeded, and returns its log.
    pub(crate) async fn migration_log(&self) -> String {
        let component = "app.kubernetes.io/component=migrate";
        let job = self.kubectl(&["get", "jobs", "--selector", component, "--output", "name"]).await;
        let job = job.trim();
        self.kubectl(&["wait", job, "--for=condition=Complete", "--timeout=180s"]).await;
        self.kubectl(&["logs", job]).await
    }

    /// Waits until the HorizontalPodAutoscaler of a role has its metric.
    pub(crate) async fn wait_until_scaling_active(&self, role: &str) {
        let autoscaler = format!("horizontalpodautoscaler/tempmail-{role}");
        self.kubectl(&["wait", &autoscaler, "--for=condition=ScalingActive", "--timeout=180s"]).await;
    }

    /// Waits until the HorizontalPodAutoscaler of a role wants this number of pods, and they are ready.
    pub(crate) async fn wait_for_pods(&self, role: &str, pods: usize) {
        for (object, field) in [
            (format!("horizontalpodautoscaler/tempmail-{role}"), "desiredReplicas"),
            (format!("deployment/tempmail-{role}"), "replicas"),
            (format!("deployment/tempmail-{role}"), "readyReplicas"),
        ] {
            let condition = format!("--for=jsonpath={{.status.{field}}}={pods}");
            self.kubectl(&["wait", &object, &condition, "--timeout=180s"]).await;
        }
    }

    /// Waits until every rollout is complete and former pods are gone.
    pub(crate) async fn wait_until_ready(&self) {
        let rollouts = ["api", "ingest", "worker", "operator", "redis"]
            .map(|name| format!("deployment/tempmail-{name}"));
        for rollout in rollouts.iter().map(String::as_str).chain(["statefulset/tempmail-postgres"]) {
            self.kubectl(&["rollout", "status", rollout, "--timeout=180s"]).await;
        }
        eventually("former pods are gone", || async {
            let ending = self
                .kubectl(&["get", "pods", "--output", "jsonpath={.items[*].metadata.deletionTimestamp}"])
                .await;
            ending.trim().is_empty().then_some(())
        })
        .await;
    }
}

async fn service(name: &str, port: u16) -> SocketAddr {
    let path = "jsonpath={.spec.clusterIP}";
    let address = run("kubectl", &["--namespace", NAMESPACE, "get", "service", name, "--output", path]).await;
    SocketAddr::new(address.parse().expect("a Service has an address"), port)
}

async fn secret(namespace: &str, name: &str, key: &str) -> String {
    let template = format!("go-template={{{{.data.{key} | base64decode}}}}");
    run("kubectl", &["--namespace", namespace, "get", "secret", name, "--output", &template]).await
}

/// `kubectl apply` of an object, by a file that is removed again.
pub(crate) async fn apply(object: &Value) {
    let file = tempfile::NamedTempFile::new().expect("a file can be created");
    std::fs::write(file.path(), object.to_string()).expect("a file can be written");
    let path = file.path().to_str().expect("the path is text");
    run("kubectl", &["apply", "--server-side", "--force-conflicts", "--filename", path]).await;
}

/// Runs a program in the root of the repository, and returns what it wrote to standard output.
///
/// # Panics
/// It fails.
pub(crate) async fn run(name: &str, arguments: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are in the repository");
    let output = Command::new(program(name)).args(arguments).current_dir(root).output().await;
    let output = output.expect("the program starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} {arguments:?}: {stderr}");
    String::from_utf8(output.stdout).expect("the output is text")
}
