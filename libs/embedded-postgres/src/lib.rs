//! A private Postgres server for one process: it finds or downloads the binaries, creates the data
//! directory, listens on a socket that only its owner can reach, and cleans up after a killed
//! process.
//!
//! The directory given to [`EmbeddedPostgres::start`] has `data/` (Postgres' own), `socket/`,
//! `password` (0600), `lock`, `postgresql.conf`, `pg_hba.conf` and `postgres.log`. The two
//! configuration files are rewritten at each start. For root, Postgres runs as the user `postgres`
//! or `nobody`, which owns `data/` and `socket/` only.

mod account;
mod binaries;
mod connection_url;
mod data_directory;
mod download;
mod error;
mod file;
mod launch;
mod lock;
mod options;
mod orphan;
mod pid_file;
mod process;
mod progress;
mod random;
mod server;
mod settings;
mod socket;

pub use connection_url::running_url;
pub use error::Error;
pub use lock::DirectoryLock;
pub use options::Options;
pub use progress::Progress;
pub use server::EmbeddedPostgres;
