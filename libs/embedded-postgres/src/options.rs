//! What to start.

use std::path::PathBuf;

use crate::progress::Progress;

/// What to start.
#[derive(Debug, Clone)]
pub struct Options {
    /// Directory of this server alone; created if it is missing. For root its parents must be open
    /// to other users (execute bit).
    pub directory: PathBuf,
    /// Where downloaded binaries are kept; several servers may share it. `directory` is used
    /// instead if Postgres' user can't enter it.
    pub downloads: PathBuf,
    /// Ignore installed binaries and use downloaded ones.
    pub skip_installed: bool,
    /// `false` trades durability for speed: for tests.
    pub durable: bool,
    /// Further settings of `postgresql.conf`, which override those made here.
    pub settings: Vec<(String, String)>,
    /// Called for steps that take long.
    pub progress: Progress,
}

impl Options {
    /// A durable server in `directory`, downloads beside its data; progress is logged.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        Self {
            downloads: directory.clone(),
            directory,
            skip_installed: false,
            durable: true,
            settings: Vec::new(),
            progress: |line| tracing::info!("{line}"),
        }
    }
}
