//! `--config` of the roles and of `migrate`.

use std::path::PathBuf;

use clap::Args;
use tempmail_runtime::config::Config;

/// Where the configuration of a role comes from.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// YAML file with settings; `TEMPMAIL_…` environment variables override it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl ConfigArgs {
    /// Loads the configuration, which must name a database.
    ///
    /// # Errors
    /// It can't be read, or `postgres.url` is not set.
    pub(crate) fn load(&self) -> anyhow::Result<Config> {
        let config = Config::load(self.config.as_deref())?;
        anyhow::ensure!(
            !config.postgres.url.is_empty(),
            "`postgres.url` is not set: set it in the file of --config, or set TEMPMAIL_POSTGRES__URL"
        );
        Ok(config)
    }
}
