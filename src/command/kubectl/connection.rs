//! Which cluster and namespace a command of `kubectl tempmail` is about: the flags are those of `kubectl`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

/// How long the API server may take for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// The cluster and the namespace.
#[derive(Debug, Args)]
pub(super) struct ConnectionArgs {
    /// Path of the kubeconfig; without it, that of KUBECONFIG or `~/.kube/config`
    #[arg(long, value_name = "FILE", global = true)]
    kubeconfig: Option<PathBuf>,
    /// Name of the context in the kubeconfig; without it, the current one
    #[arg(long, value_name = "NAME", global = true)]
    context: Option<String>,
    /// Namespace of the objects; without it, that of the context
    #[arg(long, short, value_name = "NAME", global = true)]
    namespace: Option<String>,
}

/// A client, and the namespace that a command is about.
pub(super) struct Connection {
    pub(super) client: Client,
    pub(super) namespace: String,
}

impl ConnectionArgs {
    /// Reads the kubeconfig. No request is sent.
    ///
    /// # Errors
    /// There is no kubeconfig, it is invalid, or it has no such context.
    pub(super) async fn connect(self) -> anyhow::Result<Connection> {
        let options = KubeConfigOptions { context: self.context, ..KubeConfigOptions::default() };
        let mut config = match (self.kubeconfig, &options.context) {
            (None, None) => Config::infer().await.map_err(|error| {
                anyhow!("there is no Kubernetes cluster: set KUBECONFIG, or give --kubeconfig ({error})")
            })?,
            (file, _) => read(file, &options)
                .await
                .map_err(|error| anyhow!("the kubeconfig can't be used: {error}"))?,
        };
        config.read_timeout = Some(ANSWER_TIMEOUT);
        config.reset_reader_on_write = true;
        let namespace = self.namespace.unwrap_or_else(|| config.default_namespace.clone());
        let client = Client::try_from(config).map_err(explain)?;
        Ok(Connection { client, namespace })
    }
}

async fn read(file: Option<PathBuf>, options: &KubeConfigOptions) -> Result<Config, KubeconfigError> {
    match file {
        Some(file) => Config::from_custom_kubeconfig(Kubeconfig::read_from(file)?, options).await,
        None => Config::from_kubeconfig(options).await,
    }
}

/// An error of the API server, or on the way to it, as a sentence.
pub(super) fn explain(error: kube::Error) -> anyhow::Error {
    match error {
        // Without a kind of this name the path is unknown, and the answer no Status of Kubernetes.
        kube::Error::Api(status) if status.code == 404 && status.reason != "NotFound" => {
            anyhow!("the cluster does not have tempmail's kinds: install the chart tempmail-crds")
        }
        kube::Error::Api(status) => anyhow!(status.message),
        error => {
            let error = anyhow::Error::new(error);
            anyhow!("the request to the API server failed: {}", error.root_cause())
        }
    }
}
