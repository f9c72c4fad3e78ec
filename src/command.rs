//! The command line.

mod administration;
mod check;
mod config_args;
mod data_directory;
mod migrate;
mod print;
mod role;
mod up;

use anyhow::Context as _;
use clap::{Parser, Subcommand};

use crate::process::open_files;
use administration::{AdminArgs, audit, system_domain, tenant, token};
use config_args::ConfigArgs;
use role::Role;

/// Disposable mailboxes as a platform that a company runs itself.
#[derive(Debug, Parser)]
#[command(name = "tempmail", version)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run everything on this machine, with its own Postgres
    Up(Box<up::UpArgs>),
    /// Run the HTTP interface
    Api(ConfigArgs),
    /// Run inbound SMTP
    Ingest(ConfigArgs),
    /// Run background work: webhooks, domain verification, partitions, retention, deletions
    Worker(ConfigArgs),
    /// Run the Kubernetes operator, which reconciles tempmail's custom resources
    Operator(ConfigArgs),
    /// Migrate the database to the schema of this version
    Migrate(ConfigArgs),
    /// Check that mail that is sent over SMTP is received over HTTP
    Check(check::CheckArgs),
    /// Manage tenants
    Tenant(AdminArgs<tenant::TenantCommand>),
    /// Manage the API tokens of a tenant
    Token(AdminArgs<token::TokenCommand>),
    /// Manage system domains
    SystemDomain(AdminArgs<system_domain::SystemDomainCommand>),
    /// List who made, changed or deleted what
    Audit(audit::AuditArgs),
    /// Print the reference of all settings
    Config,
    /// Print the OpenAPI document of the HTTP interface
    Openapi,
    /// Print the custom resource definitions
    Crds,
}

impl Cli {
    /// Runs the command to its end.
    ///
    /// # Errors
    /// The command failed; the message is for the person at the terminal.
    pub fn run(self) -> anyhow::Result<()> {
        let installed = rustls::crypto::aws_lc_rs::default_provider().install_default();
        anyhow::ensure!(installed.is_ok(), "another TLS provider is already installed");
        match self.command {
            Command::Config => print::config(),
            Command::Openapi => print::openapi(),
            Command::Crds => print::crds(),
            Command::Up(args) => block_on(up::run(*args)),
            Command::Migrate(args) => block_on(migrate::run(args.load()?)),
            Command::Api(args) => block_on(role::run(Role::Api, args.load()?)),
            Command::Ingest(args) => block_on(role::run(Role::Ingest, args.load()?)),
            Command::Worker(args) => block_on(role::run(Role::Worker, args.load()?)),
            Command::Operator(args) => block_on(role::run(Role::Operator, args.load()?)),
            Command::Check(args) => block_on(check::run(args)),
            Command::Tenant(args) => block_on(tenant::run(args)),
            Command::Token(args) => block_on(token::run(args)),
            Command::SystemDomain(args) => block_on(system_domain::run(args)),
            Command::Audit(args) => block_on(audit::run(args)),
        }
    }
}

fn block_on(command: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    open_files::raise_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.context("the async runtime can't be started")?.block_on(command)
}
