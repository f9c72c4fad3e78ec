//! The version of the schema. `tempmail migrate` (and `up`) update it; roles only check it.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, PgConnection, SqlSafeStr as _};
use tempmail_model::role_prefix::RolePrefix;

use super::error::SchemaError;
use super::report::MigrationReport;
use super::{group_role, object};
use crate::error::StoreError;
use crate::pool::Store;

/// Version, name and text of each file in `libs/store/migrations`, oldest first. `sqlx::migrate!` would list them,
/// too, but the macro compiles sqlx, tokio and rustls a second time.
const MIGRATIONS: [(i64, &str, &str); 1] =
    [(1, "baseline", include_str!("../../migrations/0001_baseline.sql"))];

/// The number of migrations before the first release, which the baseline replaced.
const PRERELEASE_MIGRATIONS: i64 = 12;

/// The versions of a database; 0 if it is empty.
struct Applied {
    /// The newest migration.
    migration: i64,
    /// The schema version of the program that applied the functions.
    functions: i64,
}

impl Applied {
    /// Needs the right to read only.
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
        if !objects && (1..=PRERELEASE_MIGRATIONS).contains(&migration) {
            return Err(SchemaError::Prerelease);
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

/// The schema version of this program, which is that of its newest migration.
fn needed_version() -> i64 {
    MIGRATIONS.last().map_or(0, |&(version, ..)| version)
}

fn migrator() -> Migrator {
    let migration = |(version, name, text): (i64, &'static str, &'static str)| {
        Migration::new(version, name.into(), MigrationType::Simple, text.into_sql_str(), false)
    };
    Migrator::with_migrations(MIGRATIONS.map(migration).into())
}

impl Store {
    /// Applies the missing migrations, then the functions, views and triggers that changed, under a lock, so that
    /// several processes may call it at once. What was changed by hand is replaced, and reported. Creates the group
    /// roles with this prefix where it may, and gives those that exist their rights.
    ///
    /// # Errors
    /// [`SchemaError::Newer`] and [`SchemaError::Prerelease`]: nothing was changed;
    /// [`SchemaError::Migration`]: the schema stays at the last migration that succeeded;
    /// [`SchemaError::File`]: the functions stay as they were.
    pub async fn migrate(&self, prefix: &RolePrefix) -> Result<MigrationReport, SchemaError> {
        // A connection of its own, with which its settings and its lock end. A migration, or the wait for another
        // process's, may take long: slow statements are no warning here.
        let options = PgConnectOptions::clone(&self.pool().connect_options()).disable_statement_logging();
        let mut connection = options.connect().await.map_err(StoreError::from)?;
        let migrated = migrate(&mut connection, prefix).await;
        let closed = connection.close().await;
        let report = migrated?;
        closed.map_err(StoreError::from)?;
        Ok(report)
    }

    /// Checks that the schema is one that this program works with.
    ///
    /// # Errors
    /// [`SchemaError::Older`], [`SchemaError::Newer`], [`SchemaError::Prerelease`], [`SchemaError::Store`].
    pub async fn check_schema(&self) -> Result<(), SchemaError> {
        let mut connection = self.pool().acquire().await.map_err(StoreError::from)?;
        let (applied, needed) = (Applied::read(&mut connection).await?, needed_version());
        applied.refuse_newer(needed)?;
        let found = applied.migration.min(applied.functions);
        match found.cmp(&needed) {
            Ordering::Less => Err(SchemaError::Older { found, needed }),
            Ordering::Equal | Ordering::Greater => Ok(()),
        }
    }
}

async fn migrate(connection: &mut PgConnection, prefix: &RolePrefix) -> Result<MigrationReport, SchemaError> {
    for statement in [
        // Building an index may take longer than the statements of roles.
        "/* migrate */ SET statement_timeout = 0",
        // The text of definitions depends on it.
        "/* migrate */ SET search_path = public",
        "/* migrate */ SELECT pg_advisory_lock(hashtext('tempmail.migrate'))",
    ] {
        sqlx::query(statement).execute(&mut *connection).await.map_err(StoreError::from)?;
    }
    let (applied, version) = (Applied::read(connection).await?, needed_version());
    applied.refuse_newer(version)?;
    let by_hand = if applied.functions > 0 { object::deviations(connection).await? } else { BTreeMap::new() };
    migrator().run(&mut *connection).await?;
    let mut refused = group_role::create_missing(connection, prefix).await?;
    let mut report = object::apply(connection, version, prefix, by_hand).await?;
    refused.append(&mut report.refused);
    Ok(MigrationReport { refused, ..report })
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
