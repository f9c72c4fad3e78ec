//! `kubectl tempmail`: what the objects in a cluster need from people. It only reads, as the caller may.
//!
//! `kubectl` runs a plugin as a program of its own, `kubectl-tempmail`: a link of that name to `tempmail`.

mod connection;
mod records;
mod why;

use std::path::Path;

use clap::{Parser, Subcommand};

use self::connection::ConnectionArgs;
use self::records::RecordsArgs;
use self::why::WhyArgs;

/// Name of the link.
const NAME: &str = "kubectl-tempmail";

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        use clap::CommandFactory as _;
        Kubectl::command().debug_assert();
    }
}
