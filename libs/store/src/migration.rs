//! The schema's versions. `tempmail migrate` (and `up`) bring it up; roles only check it.

use sqlx::Connection as _;
use sqlx::migrate::Migrator;

use crate::{Store, StoreError};

static MIGRATIONS: Migrator = sqlx::migrate!();

/// Why the schema is not one that this version works with.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// It lacks a migration of ours.
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
    /// A migration could not be applied.
    #[error("a migration failed: {0}")]
    Migration(#[from] sqlx::migrate::MigrateError),
    /// Postgres did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Store {
    /// Applies the migrations that are missing, under a lock, so that several may try at once.
    ///
    /// # Errors
    /// [`SchemaError::Migration`]; the schema stays at the last migration that succeeded.
    pub async fn migrate(&self) -> Result<(), SchemaError> {
        let mut connection = self.pool.acquire().await.map_err(StoreError::from)?;
        // Building an index may take longer than a statement of a role may.
        let unlimited =
            sqlx::query("/* migrate */ SET statement_timeout = 0").execute(&mut *connection).await;
        unlimited.map_err(StoreError::from)?;
        // Detached, so that the setting goes with the connection.
        let mut connection = connection.detach();
        MIGRATIONS.run(&mut connection).await?;
        connection.close().await.map_err(StoreError::from)?;
        Ok(())
    }

    /// Refuses a schema that this program does not know.
    ///
    /// # Errors
    /// [`SchemaError::Older`], [`SchemaError::Newer`], or Postgres is away.
    pub async fn check_schema(&self) -> Result<(), SchemaError> {
        let needed = MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or(0);
        let found = self.schema_version().await?;
        match found.cmp(&needed) {
            std::cmp::Ordering::Less => Err(SchemaError::Older { found, needed }),
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Greater => Err(SchemaError::Newer { found, needed }),
        }
    }

    /// The newest migration that was applied; 0 where there is none. Needs no right but to read.
    async fn schema_version(&self) -> Result<i64, StoreError> {
        let table: Option<String> =
            sqlx::query_scalar("/* schema_version */ SELECT to_regclass('_sqlx_migrations')::text")
                .fetch_one(&self.pool)
                .await?;
        if table.is_none() {
            return Ok(0);
        }
        let version: Option<i64> = sqlx::query_scalar(
            "/* schema_version */ SELECT max(version) FROM _sqlx_migrations WHERE success",
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(version.unwrap_or(0))
    }
}
