//! A private Postgres server for one process: its binaries are found or downloaded, its data
//! directory is made, it is reached by a socket that only its owner can open, and what a
//! killed process left behind is recovered.
//!
//! The directory given to [`EmbeddedPostgres::start`] is laid out as
//! `data/` (Postgres' own), `socket/`, `password` (0600), `lock`, `postgresql.conf`,
//! `pg_hba.conf` and `postgres.log`. The last four are written anew at each start or are ours
//! alone. As root, Postgres runs as the user `postgres`, or `nobody` where there is none, and
//! only `data/` and `socket/` are given to it.

mod account;
mod binaries;
mod cluster;
mod download;
mod error;
mod leftover;
mod lock;
mod running;
mod server;
mod settings;

pub use error::Error;
pub use lock::DirectoryLock;
pub use running::running_url;
pub use server::{EmbeddedPostgres, Options};
