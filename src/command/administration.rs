//! Commands that administer tenants, tokens, system domains, clusters and the database: their arguments, and the database
//! from the arguments, the settings, or a running `up`.

pub(crate) mod audit;
pub(crate) mod cluster;
pub(crate) mod restored;
pub(crate) mod system_domain;
pub(crate) mod tenant;
pub(crate) mod token;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use tempmail_embedded_postgres::{Error, running_url};
use tempmail_model::clock::{Clock as _, SystemClock};
use tempmail_runtime::config::Config;
use tempmail_store::{Actor, SchemaDefinition, SchemaError, Store, StoreError};

use crate::command::data_directory;

/// A command and where it runs.
#[derive(Debug, Args)]
pub(crate) struct AdminArgs<C: Subcommand> {
    #[command(subcommand)]
    command: C,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    database: DatabaseArgs,
}

/// Where the database is. If several are given, the first of these is used.
#[derive(Debug, Args)]
#[command(next_help_heading = "Database")]
pub(crate) struct DatabaseArgs {
    /// URL of the Postgres database [default: `postgres.url` of the settings]
    #[arg(long, value_name = "URL", global = true, conflicts_with = "data_dir")]
    postgres_url: Option<String>,
    /// Data directory of a `tempmail up` that runs on this machine [default: as for `up`]
    #[arg(long, value_name = "DIRECTORY", global = true)]
    data_dir: Option<PathBuf>,
    /// YAML file with settings; `TEMPMAIL_…` environment variables override it
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
}

/// A connection to a database with the schema of this program.
struct Database {
    /// Queries.
    store: Store,
    /// The settings, for defaults and limits.
    config: Config,
    /// Postgres' time.
    now: Timestamp,
}

impl DatabaseArgs {
    /// Connects and checks the schema.
    ///
    /// # Errors
    /// One sentence for the person at the terminal.
    async fn connect(&self, schema: &SchemaDefinition) -> anyhow::Result<Database> {
        let config = Config::load(self.config.as_deref())?;
        let url = self.url(&config)?;
        let store = Store::connect(&url, 1, "tempmail-administration")
            .ok()
            .context("the database URL is not a Postgres URL")?;
        schema.check(&store).await.map_err(|error| match error {
            SchemaError::Store(error) => explain(error),
            error => anyhow::anyhow!("{error}"),
        })?;
        let clock = SystemClock::default();
        let (offset, _) = store.clock_offset(|| clock.local_now()).await.map_err(explain)?;
        clock.set_offset(offset);
        Ok(Database { store: store.acting(Actor::Command), config, now: clock.now() })
    }

    fn url(&self, config: &Config) -> anyhow::Result<String> {
        if let Some(url) = &self.postgres_url {
            return Ok(url.clone());
        }
        if let Some(directory) = &self.data_dir {
            return url_of_up(directory).map_err(|error| match error {
                Error::NotRunning(_) => {
                    anyhow::anyhow!(
                        "no `tempmail up` is running with the data directory {}: {error}",
                        directory.display()
                    )
                }
                // Its text includes that of its source.
                error => anyhow::anyhow!("{error}"),
            });
        }
        if !config.postgres.url.is_empty() {
            return Ok(config.postgres.url.expose().to_owned());
        }
        data_directory::default_path().and_then(|directory| url_of_up(&directory).ok()).context(
            "no database is given, and no `tempmail up` is running with the default data directory: use \
             --data-dir, --postgres-url, or `postgres.url` in the settings (TEMPMAIL_POSTGRES__URL)",
        )
    }
}

/// The database URL of an `up` that is running with this data directory.
fn url_of_up(directory: &Path) -> Result<String, Error> {
    running_url(&directory.join("postgres"), "postgres")
}

/// A failed statement in one sentence, for the person at the terminal.
#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes it by value")]
fn explain(error: StoreError) -> anyhow::Error {
    if error.is_unavailable() {
        return anyhow::anyhow!("{error}: check that it is running and that the URL is right");
    }
    if error.is_denied() {
        return anyhow::anyhow!("{error}: use the login of `operator`, or that of `migrate`");
    }
    // Its text includes that of its source.
    anyhow::anyhow!("{error}")
}

/// A statement of the schema's owner that failed, in one sentence.
fn explain_owner(error: StoreError) -> anyhow::Error {
    if error.is_denied() {
        return anyhow::anyhow!("this needs the login of `migrate`: give its URL with --postgres-url");
    }
    explain(error)
}
