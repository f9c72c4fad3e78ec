//! Why a schema can't be used or migrated.

use sqlx::migrate::MigrateError;

use crate::error::{StoreError, is_lock_timeout};

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
