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
mod connection;
mod directory;
mod error;
mod launch;
mod process;
mod server;

pub use connection::running_url;
pub use directory::DirectoryLock;
pub use error::Error;
pub use server::{EmbeddedPostgres, Options};

/// Called with one line for a step of a start that takes long, such as a download.
pub type Progress = fn(&str);
