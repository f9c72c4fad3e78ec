//! The command line.

mod administration;
mod check;
mod client;
mod data_directory;
mod kubectl;
mod mail;
mod migrate;
mod output;
mod print;
mod role;
mod up;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{CommandFactory as _, Parser, Subcommand};
use tempmail_client::shown_text::escaped_text;
use tempmail_store::SchemaDefinition;

use crate::process::open_files;
use administration::{AdminArgs, audit, cluster, restored, system_domain, tenant, token};
use client::ClientFailure;
use kubectl::Kubectl;
use role::{ConfigArgs, Role};

/// Runs the command of the arguments to its end; called as `kubectl-tempmail`, that of the plugin. What needs the
/// database migrates to `schema`, or checks that this program works with the one that is there. An error is reported on
/// standard error; it may quote text of strangers.
pub fn run(schema: &SchemaDefinition) -> ExitCode {
    let ran = if kubectl::is_called() { Kubectl::parse().run() } else { Cli::parse().run(schema) };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If standard error is closed, there is nowhere left to report to.
            let _ = writeln!(std::io::stderr(), "tempmail: {}", escaped_text(&format!("{error:#}")));
            let failure = error.downcast_ref::<ClientFailure>();
            failure.map_or(ExitCode::FAILURE, |failure| failure.exit_code().into())
        }
    }
}

/// Disposable mailboxes as a platform that a company runs itself.
#[derive(Debug, Parser)]
#[command(name = "tempmail", version)]
struct Cli {
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
    /// Make addresses, and wait for mail, codes and links: a client of a server
    Mail(mail::MailArgs),
    /// Serve the tools of `mail` to a language model, over the Model Context Protocol by standard input and output
    Mcp(mail::McpArgs),
    /// Manage tenants
    Tenant(AdminArgs<tenant::TenantCommand>),
    /// Manage the API tokens of a tenant
    Token(AdminArgs<token::TokenCommand>),
    /// Manage system domains
    SystemDomain(AdminArgs<system_domain::SystemDomainCommand>),
    /// Manage the Kubernetes clusters that share the database
    Cluster(AdminArgs<cluster::ClusterCommand>),
    /// Put a restored database into service
    Database(AdminArgs<restored::DatabaseCommand>),
    /// List who made, changed or deleted what
    Audit(audit::AuditArgs),
    /// Print the reference of all settings
    Config,
    /// Print the OpenAPI document of the HTTP interface
    Openapi {
        /// Leave webhooks out, which generators of clients make operations of
        #[arg(long)]
        without_webhooks: bool,
    },
    /// Print the custom resource definitions
    Crds,
    /// Print the reference of the custom resources
    ApiReference,
    /// Print the reasons of conditions and events of the custom resources
    Reasons,
    /// Print a script by which a shell completes commands
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

impl Cli {
    /// Runs the command; an error's message is for the person at the terminal.
    fn run(self, schema: &SchemaDefinition) -> anyhow::Result<()> {
        install_tls_provider()?;
        match self.command {
            Command::Config => print::config(),
            Command::Openapi { without_webhooks } => print::openapi(without_webhooks),
            Command::Crds => print::crds(),
            Command::ApiReference => print::api_reference(),
            Command::Reasons => print::reasons(),
            Command::Completions { shell } => print::completions(shell, Self::command()),
            Command::Up(args) => block_on(up::run(*args, schema)),
            Command::Migrate(args) => block_on(migrate::run(args.load()?, schema)),
            Command::Api(args) => block_on(role::run(Role::Api, args.load()?, schema)),
            Command::Ingest(args) => block_on(role::run(Role::Ingest, args.load()?, schema)),
            Command::Worker(args) => block_on(role::run(Role::Worker, args.load()?, schema)),
            Command::Operator(args) => block_on(role::run(Role::Operator, args.load()?, schema)),
            Command::Check(args) => block_on(check::run(args)),
            Command::Mail(args) => block_on(mail::run(args)),
            Command::Mcp(args) => block_on(mail::serve_mcp(args)),
            Command::Tenant(args) => block_on(tenant::run(args, schema)),
            Command::Token(args) => block_on(token::run(args, schema)),
            Command::SystemDomain(args) => block_on(system_domain::run(args, schema)),
            Command::Cluster(args) => block_on(cluster::run(args, schema)),
            Command::Database(args) => block_on(restored::run(args, schema)),
            Command::Audit(args) => block_on(audit::run(args, schema)),
        }
    }
}

/// Makes aws-lc-rs the TLS provider of the process.
fn install_tls_provider() -> anyhow::Result<()> {
    let installed = rustls::crypto::aws_lc_rs::default_provider().install_default();
    anyhow::ensure!(installed.is_ok(), "another TLS provider is already installed");
    Ok(())
}

fn block_on(command: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    open_files::raise_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.context("the async runtime can't be started")?.block_on(command)
}
