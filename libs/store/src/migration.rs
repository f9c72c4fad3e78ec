//! The schema's versions. `tempmail migrate` (and `up`) bring it up; roles only check it. Tables are
//! changed by the migrations, functions are those of `libs/store/sql`.

mod object;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{Connection as _, PgConnection, SqlSafeStr as _};

pub use self::object::{Deviation, MigrationReport, SchemaFinding};
use crate::{Store, StoreError};

/// Version, name and text of each file in `libs/store/migrations`, oldest first. `sqlx::migrate!` would
/// list them by itself, but compiles sqlx, tokio and rustls a second time, for the macro.
const MIGRATIONS: [(i64, &str, &str); 1] = [(1, "baseline", include_str!("../migrations/0001_baseline.sql"))];

/// There were so many migrations before the first release, whose tables are not those of now.
const FORMER_MIGRATIONS: i64 = 12;

/// Why the schema is not one that this version works with.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// It lacks a migration of ours, or its functions are of an older version.
    #[error("the schema is at version {found}, this program needs {needed}: run `tempmail migrate`")]
    Older {
        /// Newest version that is applied; 0 where there is none.
        found: i64,
        /// Newest version known.
        needed: i64,
    },
    /// It has one that is newer than this program.
    #[error("the schema is at version {found}, newer than this program ({needed}): use a newer tempmail")]
    Newer {
        /// Newest version that is applied.
        found: i64,
        /// Newest version known.
        needed: i64,
    },
    /// Its migrations are those that were replaced by the baseline.
    #[error(
        "this database was made by a tempmail before its first release, whose tables are different: create an \
         empty database and run `tempmail migrate`"
    )]
    Former,
    /// A migration could not be applied.
    #[error("a migration failed: {0}")]
    Migration(#[from] sqlx::migrate::MigrateError),
    /// The functions of a file could not be applied.
    #[error("the functions of {file}.sql could not be applied: {error}")]
    File {
        /// Its name in `libs/store/sql`.
        file: &'static str,
        /// What Postgres says.
        error: StoreError,
    },
    /// Postgres did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The versions that a database is at; 0 where there is nothing.
struct Applied {
    /// Newest migration.
    migration: i64,
    /// Schema version of the program that applied the functions.
    functions: i64,
}

impl Applied {
    /// Needs no right but to read.
    async fn read(connection: &mut PgConnection) -> Result<Self, SchemaError> {
        let (migrations, objects): (bool, bool) = sqlx::query_as(
            "/* schema_version */ SELECT to_regclass('_sqlx_migrations') IS NOT NULL,
                                         to_regclass('schema_object') IS NOT NULL",
        )
        .fetch_one(&mut *connection)
        .await
        .map_err(StoreError::from)?;
        let migration = "/* schema_version */ SELECT max(version) FROM _sqlx_migrations WHERE success";
        let functions = "/* schema_version */ SELECT max(version) FROM schema_object";
        let migration = if migrations { newest(connection, migration).await? } else { 0 };
        if !objects && (1..=FORMER_MIGRATIONS).contains(&migration) {
            return Err(SchemaError::Former);
        }
        let functions = if objects { newest(connection, functions).await? } else { 0 };
        Ok(Self { migration, functions })
    }

    fn refuse_newer(&self, needed: i64) -> Result<(), SchemaError> {
        let found = self.migration.max(self.functions);
        if found > needed { Err(SchemaError::Newer { found, needed }) } else { Ok(()) }
    }
}

async fn newest(connection: &mut PgConnection, statement: &'static str) -> Result<i64, StoreError> {
    let version: Option<i64> = sqlx::query_scalar(statement).fetch_one(connection).await?;
    Ok(version.unwrap_or(0))
}

/// The schema version of this program: that of its newest migration.
fn known() -> i64 {
    MIGRATIONS.last().map_or(0, |&(version, ..)| version)
}

fn migrator() -> Migrator {
    let migration = |(version, name, text): (i64, &'static str, &'static str)| {
        Migration::new(version, name.into(), MigrationType::Simple, text.into_sql_str(), false)
    };
    Migrator::with_migrations(MIGRATIONS.map(migration).into())
}

impl Store {
    /// Applies the migrations that are missing, then the functions, views and triggers that changed, under a
    /// lock, so that several may try at once. What was changed by hand is replaced, and reported.
    ///
    /// # Errors
    /// [`SchemaError::Newer`] and [`SchemaError::Former`], before anything is touched;
    /// [`SchemaError::Migration`]: the schema stays at the last migration that succeeded;
    /// [`SchemaError::File`]: the functions stay as they were.
    pub async fn migrate(&self) -> Result<MigrationReport, SchemaError> {
        let connection = self.pool.acquire().await.map_err(StoreError::from)?;
        // Detached, so that settings and lock go with the connection.
        let mut connection = connection.detach();
        let migrated = migrate(&mut connection).await;
        let closed = connection.close().await;
        let report = migrated?;
        closed.map_err(StoreError::from)?;
        Ok(report)
    }

    /// Refuses a schema that this program does not know.
    ///
    /// # Errors
    /// [`SchemaError::Older`], [`SchemaError::Newer`], [`SchemaError::Former`], or Postgres is away.
    pub async fn check_schema(&self) -> Result<(), SchemaError> {
        let mut connection = self.pool.acquire().await.map_err(StoreError::from)?;
        let (applied, needed) = (Applied::read(&mut connection).await?, known());
        applied.refuse_newer(needed)?;
        let found = applied.migration.min(applied.functions);
        match found.cmp(&needed) {
            Ordering::Less => Err(SchemaError::Older { found, needed }),
            Ordering::Equal | Ordering::Greater => Ok(()),
        }
    }
}

async fn migrate(connection: &mut PgConnection) -> Result<MigrationReport, SchemaError> {
    for statement in [
        // Building an index may take longer than a statement of a role may.
        "/* migrate */ SET statement_timeout = 0",
        // How definitions are written depends on it.
        "/* migrate */ SET search_path = public",
        "/* migrate */ SELECT pg_advisory_lock(hashtext('tempmail.migrate'))",
    ] {
        sqlx::query(statement).execute(&mut *connection).await.map_err(StoreError::from)?;
    }
    let (applied, version) = (Applied::read(connection).await?, known());
    applied.refuse_newer(version)?;
    let by_hand = if applied.functions > 0 { object::deviations(connection).await? } else { BTreeMap::new() };
    migrator().run(&mut *connection).await?;
    object::apply(connection, version, by_hand).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_every_file_of_the_folder_in_order() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        let listed = MIGRATIONS.map(|(version, name, _)| format!("{version:04}_{name}.sql"));
        assert_eq!(files, listed);
    }
}
