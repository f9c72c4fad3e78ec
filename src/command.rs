//! The command line.

mod config;
mod crds;
mod database;
mod migrate;
mod openapi;
mod output;
mod role;
mod system_domain;
mod tenant;
mod token;
mod up;

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand};
use tempmail_runtime::config::Config;

use crate::open_files;
use database::Administration;

/// Disposable mailboxes as a platform that a company runs itself.
#[derive(Debug, Parser)]
#[command(name = "tempmail", version)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run everything on this machine, with a Postgres of its own
    Up(Box<up::Options>),
    /// Run the HTTP interface
    Api(ConfigFile),
    /// Run inbound SMTP
    Ingest(ConfigFile),
    /// Run background work: partitions, retention, deletions
    Worker(ConfigFile),
    /// Make true what the custom resources of a Kubernetes cluster say
    Operator(ConfigFile),
    /// Bring the database's schema up to this version
    Migrate(ConfigFile),
    /// Administer tenants
    Tenant(Administration<tenant::Action>),
    /// Administer API tokens of a tenant
    Token(Administration<token::Action>),
    /// Administer system domains
    SystemDomain(Administration<system_domain::Action>),
    /// Print the reference of all settings
    Config,
    /// Print the OpenAPI document of the HTTP interface
    Openapi,
    /// Print the custom resource definitions
    Crds,
}

#[derive(Debug, Args)]
struct ConfigFile {
    /// Settings, YAML; `TEMPMAIL_…` environment variables go over it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl ConfigFile {
    /// The configuration of a role, which needs a database.
    fn load(&self) -> anyhow::Result<Config> {
        let config = Config::load(self.config.as_deref())?;
        anyhow::ensure!(
            !config.postgres.url.is_empty(),
            "`postgres.url` is not set (TEMPMAIL_POSTGRES__URL)"
        );
        Ok(config)
    }
}

impl Cli {
    /// Runs the command to its end.
    pub fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::Config => config::print(),
            Command::Openapi => openapi::print(),
            Command::Crds => crds::print(),
            Command::Up(options) => block_on(up::run(*options)),
            Command::Migrate(file) => block_on(migrate::run(file.load()?)),
            Command::Api(file) => block_on(role::run(role::Role::Api, file.load()?)),
            Command::Ingest(file) => block_on(role::run(role::Role::Ingest, file.load()?)),
            Command::Worker(file) => block_on(role::run(role::Role::Worker, file.load()?)),
            Command::Operator(file) => block_on(role::run(role::Role::Operator, file.load()?)),
            Command::Tenant(options) => block_on(tenant::run(options)),
            Command::Token(options) => block_on(token::run(options)),
            Command::SystemDomain(options) => block_on(system_domain::run(options)),
        }
    }
}

fn block_on(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    open_files::take_all();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.context("can't start threads")?.block_on(work)
}
