//! `kubectl tempmail`: what the objects in a cluster need from people. It only reads, as the caller may.
//!
//! `kubectl` runs a plugin as a program of its own, `kubectl-tempmail`: a link of that name to `tempmail`.

mod records;
mod why;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use clap::{Args, Parser, Subcommand};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use self::records::RecordsArgs;
use self::why::WhyArgs;

/// Name of the link.
const NAME: &str = "kubectl-tempmail";
/// How long the API server may take for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Show what tempmail's objects in a cluster need: DNS records to create, and what is not ready.
#[derive(Debug, Parser)]
#[command(name = NAME, bin_name = "kubectl tempmail", version)]
pub(super) struct Kubectl {
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(subcommand)]
    command: KubectlCommand,
}

#[derive(Debug, Subcommand)]
enum KubectlCommand {
    /// Print the DNS records of CustomDomains, with the result of the last check
    Records(RecordsArgs),
    /// List the objects that are not ready, with the reason and what to do
    Why(WhyArgs),
}

/// Whether this program was called as the plugin.
pub(super) fn is_called() -> bool {
    let program = std::env::args_os().next();
    program.is_some_and(|program| Path::new(&program).file_stem().is_some_and(|name| name == NAME))
}

impl Kubectl {
    /// Runs the command; an error's message is for the person at the terminal.
    pub(super) fn run(self) -> anyhow::Result<()> {
        super::install_tls_provider()?;
        let Self { connection, command } = self;
        super::block_on(async move {
            let connection = connection.connect().await?;
            match command {
                KubectlCommand::Records(args) => records::run(&args, &connection).await,
                KubectlCommand::Why(args) => why::run(&args, &connection).await,
            }
        })
    }
}

/// Which cluster and namespace a command is about: the flags are those of `kubectl`.
#[derive(Debug, Args)]
struct ConnectionArgs {
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
struct Connection {
    client: Client,
    namespace: String,
}

impl ConnectionArgs {
    /// Reads the kubeconfig. No request is sent.
    ///
    /// # Errors
    /// There is no kubeconfig, it is invalid, or it has no such context.
    async fn connect(self) -> anyhow::Result<Connection> {
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
fn explain(error: kube::Error) -> anyhow::Error {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        use clap::CommandFactory as _;
        Kubectl::command().debug_assert();
    }
}
