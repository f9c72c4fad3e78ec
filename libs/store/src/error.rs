//! What can go wrong with Postgres, told apart by what the caller can do about it.

use uuid::Uuid;

/// A statement that did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Postgres can't be reached, is starting, stopping or out of something: try again later.
    #[error("Postgres is not available: {}", without_data(.0))]
    Unavailable(#[source] sqlx::Error),
    /// Postgres refused the statement: a fault of ours or of the data.
    #[error("Postgres refused a statement: {}", without_data(.0))]
    Database(#[source] sqlx::Error),
    /// Another operator leads by now: what this one wrote last did not happen.
    #[error("another operator leads")]
    Fenced,
    /// A row breaks a rule that the schema can't express.
    #[error("row {id} of {table} has an impossible {column}")]
    Inconsistent {
        /// Its table.
        table: &'static str,
        /// The column at fault.
        column: &'static str,
        /// Its id.
        id: Uuid,
    },
    /// A function of the schema answered a word that this version does not know.
    #[error("{function} answered {word:?}, which this version does not know")]
    UnknownWord {
        /// The function.
        function: &'static str,
        /// Its answer.
        word: String,
    },
}

impl StoreError {
    /// The answer `word` of `function` is none that this version knows.
    pub(crate) fn unknown_word(function: &'static str, word: &str) -> Self {
        Self::UnknownWord { function, word: word.to_owned() }
    }

    /// Whether waiting may help.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }

    /// Whether Postgres refused the data itself: SQLSTATE class 22 (data exception), 23
    /// (integrity) or 54 (program limit).
    pub fn is_data_refused(&self) -> bool {
        self.sqlstate().is_some_and(|code| ["22", "23", "54"].iter().any(|class| code.starts_with(class)))
    }

    /// Whether the retention of a recipient changed while the data of its mail was stored ahead.
    pub fn is_retention_changed(&self) -> bool {
        // Raised by `accept_mail`.
        self.sqlstate().is_some_and(|code| code == "TM002")
    }

    /// Whether a row found no partition to go to.
    pub fn is_missing_partition(&self) -> bool {
        // Postgres reports it as a check violation without a constraint.
        self.sqlstate().is_some_and(|code| code == "23514") && self.constraint().is_none()
    }

    fn sqlstate(&self) -> Option<std::borrow::Cow<'_, str>> {
        match self {
            Self::Unavailable(error) | Self::Database(error) => error.as_database_error()?.code(),
            Self::Fenced | Self::Inconsistent { .. } | Self::UnknownWord { .. } => None,
        }
    }

    /// The name of the constraint that was violated, if that is what happened.
    pub fn constraint(&self) -> Option<&str> {
        match self {
            Self::Database(error) => error.as_database_error()?.constraint(),
            _ => None,
        }
    }
}

/// The error as it may be logged: of a data exception (class 22) only the code, since its
/// message quotes the data.
fn without_data(error: &sqlx::Error) -> String {
    match error.as_database_error().and_then(sqlx::error::DatabaseError::code) {
        Some(code) if code.starts_with("22") => format!("SQLSTATE {code}"),
        _ => error.to_string(),
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let unavailable = match &error {
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed => true,
            // 08 connection, 53 resources, 57P0x shutdown and start-up, 40 serialization and
            // deadlock, 55P03 lock, 25006 read-only standby.
            sqlx::Error::Database(database) => database.code().is_some_and(|code| {
                ["08", "53", "57P0", "40", "55P03", "25006"].iter().any(|class| code.starts_with(class))
            }),
            _ => false,
        };
        // Raised by `hold_epoch`.
        if error.as_database_error().is_some_and(|database| database.code().as_deref() == Some("TM001")) {
            return Self::Fenced;
        }
        if unavailable { Self::Unavailable(error) } else { Self::Database(error) }
    }
}
