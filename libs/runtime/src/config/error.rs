//! Errors of the configuration.

use std::path::PathBuf;

/// Why the configuration is invalid: one sentence that names the key, and never a value.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file, or one that a variable names, can't be read.
    #[error("{what} names {path}, which can't be read: {source}")]
    Unreadable {
        /// The flag or variable that names the file.
        what: String,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not a YAML mapping.
    #[error("{path} is not a YAML file of settings{place}")]
    NotYaml {
        /// The file.
        path: PathBuf,
        /// The line of the error, if known.
        place: String,
    },
    /// The file has an unknown key.
    #[error("`{0}` is not a key of the configuration; `tempmail config` lists them all")]
    UnknownKey(String),
    /// The environment has an unknown variable.
    #[error(
        "the environment variable {0} sets no key of the configuration; `tempmail config` lists them all"
    )]
    UnknownVariable(String),
    /// The environment has an unknown variable of clients.
    #[error(
        "the environment variable {0} is unknown: clients read TEMPMAIL_CLIENT_URL and TEMPMAIL_CLIENT_TOKEN"
    )]
    UnknownClientVariable(String),
    /// A variable and its `…_FILE` are both set.
    #[error("`{0}` is set twice in the environment: by its variable and by a file")]
    SetTwice(&'static str),
    /// A value is invalid.
    #[error("`{key}` must be {expected}")]
    InvalidValue {
        /// The key.
        key: String,
        /// What is valid, to complete "must be …".
        expected: &'static str,
    },
    /// Two keys contradict each other.
    #[error("{0}")]
    Conflict(&'static str),
}
