//! The database of an administrative command: given, of the settings, or of a running `up`.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use tempmail_embedded_postgres::{Error, running_url};
use tempmail_model::clock::{Clock as _, SystemClock};
use tempmail_runtime::config::Config;
use tempmail_store::{SchemaError, Store, StoreError};

use super::up::data_directory;

/// Where the database is. Of several, the first of this order counts.
#[derive(Debug, Args)]
#[command(next_help_heading = "Database")]
pub struct Place {
    /// URL of the Postgres [default: `postgres.url` of settings and environment]
    #[arg(long, value_name = "URL", global = true, conflicts_with = "data_dir")]
    postgres_url: Option<String>,
    /// Data directory of a `tempmail up` that runs on this machine [default: that of `up`]
    #[arg(long, value_name = "DIRECTORY", global = true)]
    data_dir: Option<PathBuf>,
    /// Settings, YAML; `TEMPMAIL_…` environment variables go over it
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
}

/// What every administrative command takes.
#[derive(Debug, Args)]
pub struct Administration<A: Subcommand> {
    #[command(subcommand)]
    pub action: A,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
    #[command(flatten)]
    pub place: Place,
}

/// A database whose schema is of this version.
pub struct Database {
    /// Its tables.
    pub store: Store,
    /// The settings, for what is new.
    pub config: Config,
    /// Postgres' time.
    pub now: Timestamp,
}

impl Place {
    /// Connects and looks at the schema.
    ///
    /// # Errors
    /// A sentence for the person at the terminal.
    pub async fn open(&self) -> anyhow::Result<Database> {
        let config = Config::load(self.config.as_deref())?;
        let url = self.url(&config)?;
        let store =
            Store::connect(&url, 1, "tempmail-administration").ok().context("this is not a Postgres URL")?;
        store.check_schema().await.map_err(|error| match error {
            SchemaError::Store(error) => explain(error),
            error => anyhow::anyhow!("{error}"),
        })?;
        let clock = SystemClock::default();
        let (offset, _) = store.clock_offset(|| clock.local_now()).await.map_err(explain)?;
        clock.set_offset(offset);
        Ok(Database { store, config, now: clock.now() })
    }

    fn url(&self, config: &Config) -> anyhow::Result<String> {
        if let Some(url) = &self.postgres_url {
            return Ok(url.clone());
        }
        if let Some(directory) = &self.data_dir {
            return of_up(directory).map_err(|error| match error {
                Error::NotRunning(_) => {
                    anyhow::anyhow!("`tempmail up` does not run over {}: {error}", directory.display())
                }
                // Its text has that of its source.
                error => anyhow::anyhow!("{error}"),
            });
        }
        if !config.postgres.url.is_empty() {
            return Ok(config.postgres.url.expose().to_owned());
        }
        data_directory::default_path().and_then(|directory| of_up(&directory).ok()).context(
            "which database? No `tempmail up` runs over its own data directory: give --data-dir of one that \
             runs, --postgres-url, or `postgres.url` in --config (TEMPMAIL_POSTGRES__URL)",
        )
    }
}

/// The URL of the database of an `up` that runs over this data directory.
fn of_up(directory: &Path) -> Result<String, Error> {
    running_url(&directory.join("postgres"), "postgres")
}

/// A failed statement in one sentence.
#[expect(clippy::needless_pass_by_value, reason = "it is what map_err gives")]
pub fn explain(error: StoreError) -> anyhow::Error {
    if error.is_unavailable() {
        return anyhow::anyhow!("Postgres does not answer: is it running, and is this its URL?");
    }
    // Its text has that of its source.
    anyhow::anyhow!("{error}")
}
