//! Clusters that tests share, or have to themselves for a time.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio::sync::OnceCell;

use super::control_plane::{ControlPlane, ExclusiveControlPlane};
use super::kubectl::Kubectl;
use super::namespace::Namespace;
use super::objects::Objects;
use crate::CommandOutput;
use crate::tls::install_provider;
use crate::wait::eventually;

/// A cluster with tempmail's kinds. None of its processes outlives the test process.
#[derive(Debug)]
pub struct Cluster {
    kubeconfig: PathBuf,
    config: Config,
    control_plane: Source,
}

/// Where the API server of a cluster comes from.
#[derive(Debug)]
enum Source {
    /// `TEMPMAIL_TEST_KUBECONFIG`.
    Environment,
    /// All tests of this process use it.
    Shared(ControlPlane),
    /// One test at a time uses it.
    Exclusive(ExclusiveControlPlane),
}

impl Cluster {
    /// The cluster of all tests of this process, started at the first use: the one of the kubeconfig
    /// in `TEMPMAIL_TEST_KUBECONFIG`, else a control plane that the harness starts. Objects that are
    /// not in a namespace need names of the test's own.
    ///
    /// # Panics
    /// The cluster does not start: the programs of Kubernetes are not built, or etcd is not installed.
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<Cluster> = OnceCell::const_new();
        let start = || async {
            match std::env::var_os("TEMPMAIL_TEST_KUBECONFIG").filter(|path| !path.is_empty()) {
                Some(kubeconfig) => Self::from_environment(kubeconfig.into()).await,
                None => {
                    let control_plane = start_control_plane().await;
                    Self::new(control_plane.kubeconfig(), Source::Shared(control_plane)).await
                }
            }
        };
        SHARED.get_or_init(start).await
    }

    /// A control plane that no other test uses at the same time, for a test that runs operators of its
    /// own, stops the API server, or fills it with objects. No object of an earlier test is left.
    ///
    /// # Panics
    /// The cluster does not start: the programs of Kubernetes are not built, or etcd is not installed.
    pub async fn exclusive() -> Self {
        Self::from_exclusive(ExclusiveControlPlane::acquire(start_control_plane).await).await
    }

    /// Two clusters as [`Self::exclusive`] gives one, for a test of several clusters.
    ///
    /// # Panics
    /// As [`Self::exclusive`].
    pub async fn exclusive_pair() -> [Self; 2] {
        let [one, other] = ExclusiveControlPlane::acquire_two(start_control_plane).await;
        [Self::from_exclusive(one).await, Self::from_exclusive(other).await]
    }

    async fn from_exclusive(control_plane: ExclusiveControlPlane) -> Self {
        let kubeconfig = control_plane.kubeconfig();
        let is_reused = control_plane.is_reused();
        let cluster = Self::new(kubeconfig, Source::Exclusive(control_plane)).await;
        if is_reused {
            cluster.objects("default").delete_everything().await;
        }
        cluster
    }

    async fn new(kubeconfig: PathBuf, control_plane: Source) -> Self {
        let config = read_config(&kubeconfig).await;
        Self { kubeconfig, config, control_plane }
    }

    async fn from_environment(kubeconfig: PathBuf) -> Self {
        let cluster = Self::new(kubeconfig, Source::Environment).await;
        let definitions = write_definitions();
        let path = definitions.path().to_str().expect("the path is UTF-8");
        cluster.kubectl(&["apply", "-f", path]).await.expect("the kinds can be defined");
        let wait = ["wait", "--for=condition=Established", "--timeout=120s", "-f", path];
        cluster.kubectl(&wait).await.expect("the kinds are established");
        cluster
    }

    /// Path of a kubeconfig of its administrator.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Address of the API server of an [exclusive](Self::exclusive) cluster.
    ///
    /// # Panics
    /// The cluster is another, whose API server may have a host name.
    pub fn address(&self) -> SocketAddr {
        let authority = self.config.cluster_url.authority().expect("a URL has an authority");
        authority.as_str().parse().expect("it is an address and a port")
    }

    /// A client of the administrator. It belongs to the runtime of the calling test.
    ///
    /// # Panics
    /// The kubeconfig is invalid.
    pub fn client(&self) -> Client {
        Client::try_from(self.config.clone()).expect("the kubeconfig is valid")
    }

    /// A client with the rights of a user in these groups.
    ///
    /// # Panics
    /// As [`Self::client`].
    pub fn impersonating(&self, user: &str, groups: &[&str]) -> Client {
        Client::try_from(self.config_as(user, groups)).expect("the kubeconfig is valid")
    }

    /// Settings of a client of the administrator.
    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// Settings of a client with the rights of a user in these groups.
    pub(super) fn config_as(&self, user: &str, groups: &[&str]) -> Config {
        let mut config = self.config.clone();
        config.auth_info.impersonate = Some(user.to_owned());
        config.auth_info.impersonate_groups = Some(groups.iter().map(|&group| group.to_owned()).collect());
        config
    }

    /// `kubectl` as the administrator.
    pub(super) fn kubectl_program(&self) -> Kubectl {
        // Another API server may have this one's port later, so each has a cache of its own.
        let cache = match &self.control_plane {
            Source::Environment => None,
            Source::Shared(control_plane) => Some(control_plane.discovery_cache()),
            Source::Exclusive(control_plane) => Some(control_plane.discovery_cache()),
        };
        Kubectl { kubeconfig: self.kubeconfig.clone(), cache }
    }

    /// Runs `kubectl` as the administrator, and returns what it wrote to standard output.
    ///
    /// # Errors
    /// It fails, and says why on standard error.
    ///
    /// # Panics
    /// It is not installed.
    pub async fn kubectl(&self, arguments: &[&str]) -> Result<String, CommandOutput> {
        self.kubectl_program().run(arguments, "").await
    }

    /// `kubectl apply -f -` with these manifests.
    ///
    /// # Errors
    /// The API server refuses one of them.
    ///
    /// # Panics
    /// It is not installed.
    pub async fn apply(&self, yaml: &str) -> Result<String, CommandOutput> {
        self.kubectl_program().run(&["apply", "-f", "-"], yaml).await
    }

    /// The objects of a namespace, and those that are in none, as the administrator sees them.
    ///
    /// # Panics
    /// As [`Self::client`].
    pub fn objects(&self, namespace: &str) -> Objects {
        Objects::new(self.client(), namespace)
    }

    /// Its id over a database: the uid of the namespace kube-system.
    ///
    /// # Panics
    /// The API server does not show it.
    pub async fn id(&self) -> String {
        let system = self.objects("default").get("namespace/kube-system").await;
        system["metadata"]["uid"].as_str().expect("a namespace has a uid").to_owned()
    }

    /// A new namespace with this name.
    pub(super) async fn namespace_named(&self, name: &str) -> Namespace {
        let delete_on_drop = !matches!(self.control_plane, Source::Exclusive(_));
        Namespace::create_named(&self.config, name, &[], delete_on_drop).await
    }

    /// A new namespace with a random name and these labels. In a cluster that is shared its deletion
    /// starts when it is dropped.
    ///
    /// # Panics
    /// The API server refuses it.
    pub async fn namespace(&self, labels: &[(&str, &str)]) -> Namespace {
        let delete_on_drop = !matches!(self.control_plane, Source::Exclusive(_));
        Namespace::create(&self.config, labels, delete_on_drop).await
    }

    /// `kill -9` of the API server. etcd and the controller manager keep running.
    ///
    /// # Panics
    /// The cluster is not [exclusive](Self::exclusive), or its API server does not run.
    pub fn kill_api_server(&self) {
        self.own().kill_api_server();
    }

    /// Starts the API server again, at its address, and returns when it is ready.
    ///
    /// # Panics
    /// The cluster is not [exclusive](Self::exclusive), or the API server does not start.
    pub async fn start_api_server(&self) {
        self.own().start_api_server();
        let client = self.client();
        eventually("the API server is ready", || async {
            let request = hyper::Request::get("/readyz").body(Vec::new()).expect("a request");
            client.request_text(request).await.ok()
        })
        .await;
    }

    /// `kill -9` of the API server; returns when a new one is ready at its address.
    ///
    /// # Panics
    /// The cluster is not [exclusive](Self::exclusive), or the API server does not start.
    pub async fn restart_api_server(&self) {
        self.kill_api_server();
        self.start_api_server().await;
    }

    /// Stops the API server with SIGSTOP: connections stay open, and no request is answered.
    ///
    /// # Panics
    /// The cluster is not [exclusive](Self::exclusive), or its API server does not run.
    pub fn pause_api_server(&self) {
        self.own().pause_api_server();
    }

    /// Resumes a paused API server.
    ///
    /// # Panics
    /// As [`Self::pause_api_server`].
    pub fn resume_api_server(&self) {
        self.own().resume_api_server();
    }

    /// Ends the control plane with this test, instead of keeping it for another one: the test changes
    /// what cleaning up does not restore, such as the definitions of kinds.
    ///
    /// # Panics
    /// The cluster is not [exclusive](Self::exclusive).
    pub fn do_not_reuse(&self) {
        self.own().do_not_reuse();
    }

    fn own(&self) -> &ExclusiveControlPlane {
        match &self.control_plane {
            Source::Exclusive(control_plane) => control_plane,
            _ => panic!("other tests use this cluster: take one of `Cluster::exclusive`"),
        }
    }
}

async fn start_control_plane() -> ControlPlane {
    let definitions = write_definitions();
    let starting = tokio::task::spawn_blocking(move || ControlPlane::start(definitions.path()));
    starting.await.expect("the control plane starts")
}

async fn read_config(kubeconfig: &Path) -> Config {
    install_provider();
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("the kubeconfig can be read");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    config.expect("the kubeconfig names a cluster")
}

/// A file with the definitions of tempmail's kinds, for `kubectl`.
fn write_definitions() -> NamedTempFile {
    let definitions = tempmail_crds::manifests().expect("the definitions can be written");
    let file = NamedTempFile::with_suffix(".yaml").expect("a file can be made");
    std::fs::write(file.path(), definitions).expect("a file can be written");
    file
}

impl Cluster {
    /// Removes the validation of a kind's spec (`customdomains`), as the definitions of another version
    /// might. The API server enforces it for some moments longer.
    ///
    /// # Panics
    /// The cluster is not [exclusive](Self::exclusive).
    pub async fn remove_spec_validation(&self, plural: &str) {
        self.do_not_reuse();
        let version = "/spec/versions/0";
        let spec = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let path = format!("{version}/schema/openAPIV3Schema/properties/spec");
        let mut patch = vec![json!({"op": "replace", "path": path, "value": spec})];
        if plural != "tenants" {
            patch.push(json!({"op": "remove", "path": format!("{version}/selectableFields")}));
        }
        let (definition, patch) = (format!("{plural}.tempmail.dev"), Value::from(patch).to_string());
        let patched = self.kubectl(&["patch", "crd", &definition, "--type=json", "-p", &patch]).await;
        patched.expect("the definition is patched");
    }

    /// Deletes the definition of a kind (`mailboxes`).
    ///
    /// # Panics
    /// The cluster is not [exclusive](Self::exclusive).
    pub async fn delete_definition(&self, plural: &str) {
        self.do_not_reuse();
        let definition = format!("{plural}.tempmail.dev");
        self.kubectl(&["delete", "crd", &definition]).await.expect("the definition is deleted");
    }

    /// Applies the definitions of all kinds.
    ///
    /// # Panics
    /// The API server refuses them.
    pub async fn apply_definitions(&self) {
        let definitions = tempmail_crds::manifests().expect("the definitions can be written");
        self.apply(&definitions).await.expect("the API server accepts the definitions");
    }
}
