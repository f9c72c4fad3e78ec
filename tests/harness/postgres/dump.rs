//! Dumps of a database, and their restore into another server.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use sqlx::{Executor as _, PgPool};
use tempfile::NamedTempFile;

use super::dedicated::DATABASE;
use super::{Database, DedicatedPostgres, admin, url_of};

/// Each block writes in a subtransaction, which has a number of its own.
const USE_TRANSACTION_IDS: &str = "
    DO $$
    BEGIN
        CREATE TEMPORARY TABLE used (number integer) ON COMMIT DROP;
        FOR i IN 1 .. 20000 LOOP
            BEGIN
                INSERT INTO used VALUES (i);
            EXCEPTION WHEN division_by_zero THEN
                NULL;
            END;
        END LOOP;
    END $$";

/// What `pg_dump` wrote.
#[derive(Debug)]
pub struct Dump(NamedTempFile);

impl Database {
    /// Dumps it while it is in use.
    ///
    /// # Panics
    /// `pg_dump` fails.
    pub async fn dump(&self) -> Dump {
        let file = NamedTempFile::new().expect("a file can be made");
        let arguments = ["--format=custom", "--dbname", &self.url, "--file"].map(OsStr::new);
        run(&self.pool(), "pg_dump", &[&arguments[..], &[file.path().as_os_str()]].concat()).await;
        Dump(file)
    }

    /// Has its server use 20,000 transaction ids: some ten times what a new server has used.
    ///
    /// # Panics
    /// Postgres does not answer.
    pub async fn use_transaction_ids(&self) {
        self.pool().execute(USE_TRANSACTION_IDS).await.expect("Postgres answers");
    }
}

impl DedicatedPostgres {
    /// Restores a dump as its one database, in place of the one that there is. The roles of the dump exist if
    /// [`Self::database`] was called before.
    ///
    /// # Panics
    /// `pg_restore` fails.
    pub async fn restore(&self, dump: &Dump) -> Database {
        admin(&self.url(), format!("DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")).await;
        admin(&self.url(), format!("CREATE DATABASE {DATABASE}")).await;
        let url = url_of(&self.url(), DATABASE);
        let database = Database { name: DATABASE.to_owned(), url, is_shared: false };
        let arguments = ["--exit-on-error", "--dbname", &database.url].map(OsStr::new);
        let arguments = [&arguments[..], &[dump.0.path().as_os_str()]].concat();
        run(&database.pool(), "pg_restore", &arguments).await;
        database
    }
}

/// Runs a client program, which is beside the server's own.
async fn run(pool: &PgPool, program: &str, arguments: &[&OsStr]) {
    let folder: String = sqlx::query_scalar("SELECT setting FROM pg_config WHERE name = 'BINDIR'")
        .fetch_one(pool)
        .await
        .expect("Postgres answers");
    pool.close().await;
    let output = Command::new(Path::new(&folder).join(program)).args(arguments).output();
    let output = output.expect("Postgres' client programs are installed");
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
}
