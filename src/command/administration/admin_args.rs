//! The arguments that all administrative commands share.

use clap::{Args, Subcommand};

use super::database::DatabaseArgs;

/// A command and where it runs.
#[derive(Debug, Args)]
pub(crate) struct AdminArgs<C: Subcommand> {
    #[command(subcommand)]
    pub(super) command: C,
    /// Print JSON
    #[arg(long, global = true)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) database: DatabaseArgs,
}
