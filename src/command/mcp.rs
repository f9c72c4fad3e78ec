//! `tempmail mcp`: the Model Context Protocol by standard input and output, for a client on this machine.

use anyhow::anyhow;
use tempmail_mcp::{Deletion, McpService, serve_stdio};

use super::client::ClientArgs;

/// Arguments of `tempmail mcp`.
#[derive(Debug, clap::Args)]
pub(crate) struct McpArgs {
    #[command(flatten)]
    server: ClientArgs,
    /// Offer tools that delete mail
    #[arg(long)]
    allow_delete: bool,
}

/// Serves until standard input ends.
pub(crate) async fn run(args: McpArgs) -> anyhow::Result<()> {
    let deletion = if args.allow_delete { Deletion::Allowed } else { Deletion::Forbidden };
    let service = McpService::new(args.server.client()?, deletion);
    serve_stdio(service).await.map_err(|error| anyhow!("{error}"))
}
