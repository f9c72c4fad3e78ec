//! The version of the schema. `tempmail migrate` (and `up`) update it and report what they found changed by hand;
//! roles only check it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, PgConnection, SqlSafeStr as _};
use tempmail_model::role_prefix::RolePrefix;
use tokio::time::{Instant, sleep, timeout_at};

use super::definition::{MigrationFile, SchemaDefinition};
use super::group_role;
use super::object::{self, Object};
use crate::error::{StoreError, is_lock_timeout};
use crate::pool::Store;

/// The number of migrations before the first release, which the baseline replaced.
const PRERELEASE_MIGRATIONS: i64 = 12;

/// How long a statement of a migration waits for a lock. Statements of the roles wait behind it; it is shorter than
/// the time after which Postgres resolves a deadlock, so that it is never a role whose statement fails.
const LOCK_TIMEOUT: &str = "500ms";
/// The time between two attempts, and how long they are repeated.
const LOCK_PAUSE: Duration = Duration::from_millis(500);
const LOCK_PATIENCE: Duration = Duration::from_secs(120);

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

    fn newest(&self) -> i64 {
        self.migration.max(self.functions)
    }
}

async fn newest(connection: &mut PgConnection, statement: &'static str) -> Result<i64, StoreError> {
    let version: Option<i64> = sqlx::query_scalar(statement).fetch_one(connection).await?;
    Ok(version.unwrap_or(0))
}

impl SchemaDefinition {
    /// Applies the missing migrations, then the functions, views and triggers that changed, under a lock, so that
    /// several processes may call it at once. What was changed by hand is replaced, and reported. Roles of
    /// [`Self::lowest_compatible`] and newer may run meanwhile: what they call is kept, and none of their statements
    /// waits longer than half a second for it. Creates the group roles with this prefix where it may, and gives those
    /// that exist their rights.
    ///
    /// # Errors
    /// [`SchemaError::Newer`] and [`SchemaError::Prerelease`]: nothing was changed;
    /// [`SchemaError::Migration`]: the schema stays at the last migration that succeeded;
    /// [`SchemaError::File`]: the functions stay as they were.
    pub async fn migrate(&self, store: &Store, prefix: &RolePrefix) -> Result<MigrationReport, SchemaError> {
        // A connection of its own, with which its settings and its lock end. A migration, or the wait for another
        // process's, may take long: slow statements are no warning here.
        let options = PgConnectOptions::clone(&store.pool().connect_options()).disable_statement_logging();
        let mut connection = options.connect().await.map_err(StoreError::from)?;
        let migrated = self.migrate_over(&mut connection, prefix).await;
        let closed = connection.close().await;
        let report = migrated?;
        closed.map_err(StoreError::from)?;
        Ok(report)
    }

    /// Checks that programs of this version work with the schema that there is.
    ///
    /// # Errors
    /// [`SchemaError::Older`], [`SchemaError::Newer`], [`SchemaError::Prerelease`], [`SchemaError::Store`].
    pub async fn check(&self, store: &Store) -> Result<(), SchemaError> {
        let mut connection = store.acquire().await?;
        // Closed where an answer is missing.
        connection.close_on_drop();
        let (deadline, needed) = (connection.deadline(), self.version());
        let versions = async {
            let applied = Applied::read(&mut connection).await?;
            let lowest =
                if applied.newest() > needed { lowest_compatible(&mut connection).await? } else { 0 };
            Ok::<_, SchemaError>((applied, lowest))
        };
        let versions = timeout_at(deadline, versions).await;
        let (applied, lowest) = versions.map_err(|_| StoreError::Silent)??;
        if lowest > needed {
            return Err(SchemaError::Newer { found: applied.newest(), needed });
        }
        let found = applied.migration.min(applied.functions);
        if found < needed { Err(SchemaError::Older { found, needed }) } else { Ok(()) }
    }

    async fn migrate_over(
        &self,
        connection: &mut PgConnection,
        prefix: &RolePrefix,
    ) -> Result<MigrationReport, SchemaError> {
        for statement in [
            // Building an index may take longer than the statements of roles.
            "/* migrate */ SET statement_timeout = 0",
            // The text of definitions depends on it.
            "/* migrate */ SET search_path = public",
            "/* migrate */ SELECT pg_advisory_lock(hashtext('tempmail.migrate'))",
        ] {
            sqlx::query(statement).execute(&mut *connection).await.map_err(StoreError::from)?;
        }
        let (applied, needed) = (Applied::read(connection).await?, self.version());
        if applied.newest() > needed {
            return Err(SchemaError::Newer { found: applied.newest(), needed });
        }
        let by_hand =
            if applied.functions > 0 { object::deviations(connection).await? } else { BTreeMap::new() };
        let limit =
            sqlx::query("/* migrate */ SELECT set_config('lock_timeout', $1, false)").bind(LOCK_TIMEOUT);
        limit.execute(&mut *connection).await.map_err(StoreError::from)?;
        let give_up = Instant::now() + LOCK_PATIENCE;
        loop {
            match self.try_migrate_over(connection, prefix, &by_hand).await {
                Err(error) if error.is_lock_timeout() && Instant::now() < give_up => {
                    tracing::info!("waiting for statements of other processes to end");
                    sleep(LOCK_PAUSE).await;
                }
                ended => return ended,
            }
        }
    }

    async fn try_migrate_over(
        &self,
        connection: &mut PgConnection,
        prefix: &RolePrefix,
        by_hand: &BTreeMap<Object, Deviation>,
    ) -> Result<MigrationReport, SchemaError> {
        self.migrator().run(&mut *connection).await?;
        let mut refused = group_role::create_missing(connection, prefix).await?;
        let mut report = object::apply(connection, self, prefix, by_hand).await?;
        refused.append(&mut report.refused);
        Ok(MigrationReport { refused, ..report })
    }

    fn migrator(&self) -> Migrator {
        let migration = |file: &MigrationFile| {
            let text = file.text.into_sql_str();
            Migration::new(file.version, file.name.into(), MigrationType::Simple, text, false)
        };
        Migrator::with_migrations(self.migrations.iter().map(migration).collect())
    }
}

/// The lowest schema version whose programs work with a schema that is newer than this program.
async fn lowest_compatible(connection: &mut PgConnection) -> Result<i64, StoreError> {
    let statement = "/* schema_version */ SELECT lowest_version FROM schema_compatibility";
    Ok(sqlx::query_scalar(statement).fetch_one(connection).await?)
}

/// Why this program can't use or migrate the schema.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// It lacks a migration, or its functions are of an older version.
    #[error("the schema is at version {found}, this program needs {needed}: run `tempmail migrate`")]
    Older {
        /// Newest version applied; 0 if none is.
        found: i64,
        /// Newest version known.
        needed: i64,
    },
    /// It is too new for this program, or newer than what it migrates to.
    #[error("the schema is at version {found}, newer than this program ({needed}): use a newer tempmail")]
    Newer {
        /// Newest version applied.
        found: i64,
        /// Newest version known.
        needed: i64,
    },
    /// It was created before the first release.
    #[error(
        "this database was created by a tempmail before its first release, whose tables are different: create an \
         empty database and run `tempmail migrate`"
    )]
    Prerelease,
    /// A migration could not be applied.
    #[error("a migration failed: {0}")]
    Migration(#[from] MigrateError),
    /// The functions of a file could not be applied.
    #[error("the functions of {file}.sql could not be applied: {error}")]
    File {
        /// Its name in `libs/store/sql`.
        file: &'static str,
        /// The error of Postgres.
        error: StoreError,
    },
    /// The login of a role can't do what the role needs.
    #[error(
        "the database login {login} lacks {right}, which `{role}` needs: make it a member of {group} (GRANT {group} TO \
         {login}), and run `tempmail migrate`"
    )]
    LacksRight {
        /// The login.
        login: String,
        /// The first right that it lacks, such as `SELECT on message`.
        right: String,
        /// The role of tempmail.
        role: &'static str,
        /// The group role that has the right.
        group: String,
    },
    /// Postgres failed or is not available.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SchemaError {
    /// Whether a lock was not granted in time.
    pub(super) fn is_lock_timeout(&self) -> bool {
        match self {
            Self::Store(error) | Self::File { error, .. } => error.is_lock_timeout(),
            Self::Migration(MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _)) => {
                is_lock_timeout(error)
            }
            _ => false,
        }
    }
}

/// What `migrate` reports to the administrator.
#[derive(Debug, Default)]
pub struct MigrationReport {
    /// One for each object that deviates.
    pub findings: Vec<SchemaFinding>,
    /// Statements about roles and rights that are needed and that the login may not run, in order.
    pub refused: Vec<String>,
}

/// A function, view or trigger that differs from what a tempmail applied. Displayed as a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaFinding {
    /// Its kind and name, such as `function new_id(timestamp with time zone)`.
    pub object: String,
    /// How it differs.
    pub deviation: Deviation,
}

/// How an object differs from what was applied last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deviation {
    /// Its definition was changed. It was replaced.
    Changed,
    /// It was dropped. It was created again.
    Dropped,
    /// A function that no tempmail created. It was not changed.
    Foreign,
}

impl fmt::Display for SchemaFinding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.deviation {
            Deviation::Changed => "was changed by hand, and is replaced by this version's",
            Deviation::Dropped => "was dropped by hand, and is created again as this version has it",
            Deviation::Foreign => "is not part of tempmail, and is not changed",
        };
        write!(formatter, "{} {what}", self.object)
    }
}
