//! Kubernetes as the operator meets it: a real API server with its controller manager and etcd.
//! There is no node: pods stay Pending.

mod control_plane;
mod kubectl;
mod namespace;
mod operator;
mod proxy;
mod team;
mod world;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tempfile::NamedTempFile;
use tokio::sync::{OnceCell, Semaphore, SemaphorePermit};

use self::control_plane::ControlPlane;
pub use self::kubectl::program;
pub use self::namespace::Namespace;
pub use self::operator::OperatorProcess;
pub use self::proxy::{ApiProxy, ApiRequest, Fault, Reached, Verb, When};
pub use self::team::{Team, condition, secret_value};
pub use self::world::{SharedWorld, World};
use crate::tls::install_provider;

/// A cluster that knows the kinds of tempmail. Nothing of it outlives the test process.
#[derive(Debug)]
pub struct Cluster {
    kubeconfig: PathBuf,
    config: Config,
    /// `None` where the environment named the cluster.
    control_plane: Option<ControlPlane>,
    // Dropped last: the next one starts when this has ended.
    turn: Option<SemaphorePermit<'static>>,
}

impl Cluster {
    /// That of all tests of this process, started at the first use: the cluster of the kubeconfig
    /// that `TEMPMAIL_TEST_KUBECONFIG` names, else a control plane of our own. What is not in a
    /// namespace is every test's: it wants a name of the test's own.
    ///
    /// # Panics
    /// It does not start: the programs of Kubernetes are not built, or there is no etcd.
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<Cluster> = OnceCell::const_new();
        let start = || async {
            match std::env::var_os("TEMPMAIL_TEST_KUBECONFIG").filter(|path| !path.is_empty()) {
                Some(kubeconfig) => Self::given(kubeconfig.into()).await,
                None => Self::new(None).await,
            }
        };
        SHARED.get_or_init(start).await
    }

    /// A control plane of one test, which may take the API server away and fill it with objects.
    /// There are two at a time beside the shared one: each takes 420 MiB.
    ///
    /// # Panics
    /// It does not start: the programs of Kubernetes are not built, or there is no etcd.
    pub async fn start() -> Self {
        static TURN: Semaphore = Semaphore::const_new(2);
        let turn = TURN.acquire().await.expect("nobody closes it");
        Self::new(Some(turn)).await
    }

    async fn new(turn: Option<SemaphorePermit<'static>>) -> Self {
        let manifest = manifest();
        let starting = tokio::task::spawn_blocking(move || ControlPlane::start(manifest.path()));
        let control_plane = starting.await.expect("the control plane starts");
        let kubeconfig = control_plane.kubeconfig();
        let config = config(&kubeconfig).await;
        Self { kubeconfig, config, control_plane: Some(control_plane), turn }
    }

    async fn given(kubeconfig: PathBuf) -> Self {
        let config = config(&kubeconfig).await;
        let cluster = Self { kubeconfig, config, control_plane: None, turn: None };
        let manifest = manifest();
        let path = manifest.path().to_str().expect("the path is UTF-8");
        cluster.kubectl(&["apply", "-f", path]).await.expect("the kinds can be defined");
        let wait = ["wait", "--for=condition=Established", "--timeout=120s", "-f", path];
        cluster.kubectl(&wait).await.expect("the kinds are established");
        cluster
    }

    /// Path of a kubeconfig of its administrator.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Where its API server listens, of a cluster of [`Self::start`].
    ///
    /// # Panics
    /// The cluster is another, whose API server may have a name.
    pub fn address(&self) -> SocketAddr {
        let authority = self.config.cluster_url.authority().expect("a URL has an authority");
        authority.as_str().parse().expect("it is an address and a port")
    }

    /// A client of the administrator, for the test that asks for it.
    ///
    /// # Panics
    /// The kubeconfig says nothing that a client could use.
    pub fn client(&self) -> Client {
        Client::try_from(self.config.clone()).expect("the kubeconfig is one")
    }

    /// A client that may do what this user of these groups may.
    ///
    /// # Panics
    /// As [`Self::client`].
    pub fn impersonating(&self, user: &str, groups: &[&str]) -> Client {
        Client::try_from(self.config_as(user, groups)).expect("the kubeconfig is one")
    }

    fn config_as(&self, user: &str, groups: &[&str]) -> Config {
        let mut config = self.config.clone();
        config.auth_info.impersonate = Some(user.to_owned());
        config.auth_info.impersonate_groups = Some(groups.iter().map(|&group| group.to_owned()).collect());
        config
    }

    /// A new namespace with a random name and these labels. Its deletion begins when it is dropped.
    ///
    /// # Panics
    /// The API server refuses.
    pub async fn namespace(&self, labels: &[(&str, &str)]) -> Namespace {
        // A cluster of one test goes as a whole.
        let outlives_test = self.turn.is_none();
        Namespace::create(&self.config, labels, outlives_test).await
    }

    /// `kill -9` of the API server. etcd and the controller manager go on.
    ///
    /// # Panics
    /// The cluster is not of [`Self::start`], or it is gone already.
    pub fn kill_api_server(&self) {
        self.own().kill_api_server();
    }

    /// Starts the API server again, at its address, and returns when it is ready.
    ///
    /// # Panics
    /// The cluster is not of [`Self::start`], or it does not start.
    pub async fn start_api_server(&self) {
        self.own().start_api_server();
        self.is_ready().await;
    }

    /// `kill -9` of the API server, and returns when a new one is ready at its address.
    ///
    /// # Panics
    /// The cluster is not of [`Self::start`], or it does not start.
    pub async fn restart_api_server(&self) {
        self.kill_api_server();
        self.start_api_server().await;
    }

    /// Stops the API server in its tracks: connections stay, and nothing is answered.
    ///
    /// # Panics
    /// The cluster is not of [`Self::start`], or the API server is gone.
    pub fn pause_api_server(&self) {
        self.own().pause_api_server();
    }

    /// Lets it go on.
    ///
    /// # Panics
    /// As [`Self::pause_api_server`].
    pub fn resume_api_server(&self) {
        self.own().resume_api_server();
    }

    fn own(&self) -> &ControlPlane {
        assert!(self.turn.is_some(), "other tests use this cluster: take one of `Cluster::start`");
        self.control_plane.as_ref().expect("we started it")
    }

    async fn is_ready(&self) {
        let client = self.client();
        crate::wait::eventually("the API server is ready", || async {
            let request = hyper::Request::get("/readyz").body(Vec::new()).expect("a request");
            client.request_text(request).await.ok()
        })
        .await;
    }
}

async fn config(kubeconfig: &Path) -> Config {
    install_provider();
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("the kubeconfig can be read");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    config.expect("the kubeconfig names a cluster")
}

/// The kinds of tempmail, for `kubectl`.
fn manifest() -> NamedTempFile {
    let manifests = tempmail_crds::manifests().expect("the definitions can be written");
    let file = NamedTempFile::with_suffix(".yaml").expect("a file can be made");
    std::fs::write(file.path(), manifests).expect("a file can be written");
    file
}
