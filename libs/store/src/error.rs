//! Errors of Postgres, by what the caller can do about them.

use std::borrow::Cow;

use uuid::Uuid;

/// Why a statement failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Postgres can't be reached, is starting or stopping, or lacks a resource: try again later.
    #[error("Postgres is not available: {}", without_data(.0))]
    Unavailable(#[source] sqlx::Error),
    /// No connection to Postgres was made in time, and this is why: try again later.
    #[error("Postgres can't be reached: {0}")]
    Unreachable(String),
    /// All connections of this process were in use for as long as a statement waits for one, and Postgres is well: try
    /// again later.
    #[error("all {connections} connections of this process to Postgres (`postgres.pool`) are in use")]
    PoolExhausted {
        /// How many there may be.
        connections: u32,
    },
    /// Postgres, or the network before it, did not answer in time: try again later. Whether a statement had an effect
    /// is not known.
    #[error("Postgres does not answer")]
    Silent,
    /// Postgres refused the statement, because of the statement or of its data.
    #[error("Postgres refused a statement: {}", without_data(.0))]
    Database(#[source] sqlx::Error),
    /// The login may not do this.
    #[error(
        "the database login lacks a right ({}): `tempmail migrate` grants rights to the group roles, of which logins \
         are members",
        without_data(.0)
    )]
    Denied(#[source] sqlx::Error),
    /// Prepared statements are not found where they were prepared, or are there already.
    #[error(
        "a pooler before Postgres gives each statement another connection: let it pool sessions (for PgBouncer \
         `pool_mode = session`), or connect to Postgres itself"
    )]
    StatementPooling(#[source] sqlx::Error),
    /// Another operator leads: nothing was written.
    #[error("another operator leads")]
    Fenced,
    /// The token that was to make something was revoked or deleted meanwhile: nothing was written.
    #[error("the token has ended")]
    TokenEnded,
    /// A row breaks a rule that the schema can't express.
    #[error("row {id} of {table} has an impossible {column}")]
    Inconsistent {
        /// Its table.
        table: &'static str,
        /// The wrong column.
        column: &'static str,
        /// The id of the row.
        id: Uuid,
    },
    /// An SQL function answered a word that this version does not know.
    #[error("{function} answered {word:?}, which this version does not know")]
    UnknownWord {
        /// The function.
        function: &'static str,
        /// Its answer.
        word: String,
    },
}

impl StoreError {
    /// `function` answered `word`, which this version does not know.
    pub(crate) fn unknown_word(function: &'static str, word: &str) -> Self {
        Self::UnknownWord { function, word: word.to_owned() }
    }

    /// Whether to try again later.
    pub fn is_unavailable(&self) -> bool {
        matches!(
            self,
            Self::Unavailable(_) | Self::Unreachable(_) | Self::PoolExhausted { .. } | Self::Silent
        )
    }

    /// Whether the statement waited for as long as it may, for a connection or for its answer: the next one may wait as
    /// long.
    pub fn is_silent(&self) -> bool {
        matches!(self, Self::Silent | Self::Unreachable(_) | Self::PoolExhausted { .. })
    }

    /// Whether Postgres refused the data itself: SQLSTATE class 22 (data exception), 23
    /// (integrity) or 54 (program limit).
    pub fn is_data_refused(&self) -> bool {
        self.sqlstate().is_some_and(|code| ["22", "23", "54"].iter().any(|class| code.starts_with(class)))
    }

    /// Whether the retention of a recipient changed after the raw data of its mail was stored.
    pub fn is_retention_changed(&self) -> bool {
        // Raised by `accept_mail`.
        self.sqlstate().is_some_and(|code| code == "TM002")
    }

    /// Whether a row has no partition.
    pub fn is_missing_partition(&self) -> bool {
        // Postgres reports it as a check violation without a constraint.
        self.sqlstate().is_some_and(|code| code == "23514") && self.constraint().is_none()
    }

    /// Whether a migration changed what the statement was planned for: its result, or a function that was replaced. The
    /// statement had no effect; planned again, it works.
    pub(crate) fn is_plan_outdated(&self) -> bool {
        self.sqlstate().is_some_and(|code| code == "0A000")
            // Internal errors are not translated.
            || matches!(self, Self::Database(error) if error.as_database_error().is_some_and(|error| {
                error.message().starts_with("cache lookup failed for function")
            }))
    }

    /// Whether a lock was not granted in time, or there was a deadlock.
    pub(crate) fn is_lock_timeout(&self) -> bool {
        matches!(self, Self::Unavailable(error) | Self::Database(error) if is_lock_timeout(error))
    }

    fn sqlstate(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Unavailable(error)
            | Self::Database(error)
            | Self::StatementPooling(error)
            | Self::Denied(error) => sqlstate(error),
            Self::Unreachable(_)
            | Self::PoolExhausted { .. }
            | Self::Silent
            | Self::Fenced
            | Self::TokenEnded
            | Self::Inconsistent { .. }
            | Self::UnknownWord { .. } => None,
        }
    }

    /// Whether Postgres has no right for the login to do this.
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::Denied(_))
    }

    /// Whether what was to be created exists: found at once, or while another transaction created it.
    pub(crate) fn is_duplicate(&self) -> bool {
        self.sqlstate().is_some_and(|code| code == "42710" || code == "23505")
    }

    /// The name of the constraint that was violated, if one was.
    pub fn constraint(&self) -> Option<&str> {
        match self {
            Self::Database(error) => error.as_database_error()?.constraint(),
            _ => None,
        }
    }
}

/// The code of an error of Postgres.
fn sqlstate(error: &sqlx::Error) -> Option<Cow<'_, str>> {
    error.as_database_error()?.code()
}

/// Whether a lock was not granted in time, or there was a deadlock.
pub(crate) fn is_lock_timeout(error: &sqlx::Error) -> bool {
    sqlstate(error).is_some_and(|code| code == "55P03" || code == "40P01")
}

/// The text of an error for logs: of a data exception (class 22) only the code, because its message quotes the
/// data.
fn without_data(error: &sqlx::Error) -> String {
    match sqlstate(error) {
        Some(code) if code.starts_with("22") => format!("SQLSTATE {code}"),
        _ => error.to_string(),
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let unavailable = match &error {
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed => true,
            // 08 connection, 53 resources, 57P0x shutdown and start-up, 40 serialization and
            // deadlock, 55P03 lock, 25006 read-only standby, 57014 `statement_timeout`.
            sqlx::Error::Database(database) => database.code().is_some_and(|code| {
                ["08", "53", "57P0", "40", "55P03", "25006", "57014"]
                    .iter()
                    .any(|class| code.starts_with(class))
            }),
            _ => false,
        };
        match sqlstate(&error).as_deref() {
            // Raised by `lock_epoch`.
            Some("TM001") => Self::Fenced,
            // Raised by `token_origin`.
            Some("TM004") => Self::TokenEnded,
            // A prepared statement exists, or does not.
            Some("42P05" | "26000") => Self::StatementPooling(error),
            Some("42501") => Self::Denied(error),
            _ if unavailable => Self::Unavailable(error),
            _ => Self::Database(error),
        }
    }
}
