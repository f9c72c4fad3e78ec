//! Why a client command did not find what was requested, with its exit code.

use serde_json::{Value, json};
use tempmail_client::Error;

use crate::command::mail::instead::{self, Instead};

const NOTHING_IN_TIME: &str = "no such mail came in time";

/// What a command reports instead of a result.
#[derive(Debug, thiserror::Error)]
pub(in crate::command) enum ClientFailure {
    /// The arguments or the configuration are wrong.
    #[error("{0}")]
    Usage(String),
    /// Nothing came in time.
    #[error("{NOTHING_IN_TIME}{}", instead::lines(.instead.as_deref()))]
    NothingInTime {
        /// Where to continue; empty where no call was answered.
        next_since: String,
        /// What came instead; `None` where the server does not tell.
        instead: Option<Vec<Instead>>,
    },
    /// The links of the mail lead to other hosts.
    #[error("the mail's link leads to another host: {}", .hosts.join(", "))]
    OtherHost {
        /// Where they lead.
        hosts: Vec<String>,
        /// The cursor behind the mail.
        next_since: String,
    },
    /// The server refused.
    #[error("{0}")]
    Refused(Error),
    /// There is no server, or none that serves.
    #[error("{0}")]
    Unreachable(Error),
}

impl ClientFailure {
    /// The exit code of the command.
    pub(in crate::command) fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::NothingInTime { .. } => 3,
            Self::Refused(_) | Self::OtherHost { .. } => 4,
            Self::Unreachable(_) => 5,
        }
    }

    /// What `--json` prints: `{error, message}`, and `next_since`, `instead` and `hosts` where there are any.
    pub(in crate::command) fn json(&self) -> Value {
        let message = match self {
            Self::NothingInTime { .. } => NOTHING_IN_TIME.to_owned(),
            other => other.to_string(),
        };
        let mut json = json!({"error": self.name(), "message": message});
        if let Self::NothingInTime { instead, .. } = self {
            json["instead"] = json!(instead);
        }
        if let Self::NothingInTime { next_since, .. } | Self::OtherHost { next_since, .. } = self {
            json["next_since"] = next_since.as_str().into();
        }
        if let Self::OtherHost { hosts, .. } = self {
            json["hosts"] = json!(hosts);
        }
        json
    }

    fn name(&self) -> &str {
        match self {
            Self::Usage(_) => "usage",
            Self::NothingInTime { .. } => "nothing_in_time",
            Self::OtherHost { .. } => "other_host",
            Self::Refused(error) if !error.code().is_empty() => error.code(),
            Self::Refused(_) => "refused",
            Self::Unreachable(_) => "unreachable",
        }
    }
}

impl From<Error> for ClientFailure {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid(sentence) => Self::Usage(sentence),
            // Whatever is there, it is no tempmail.
            Error::Unexpected(_) => Self::Unreachable(error),
            error if error.is_unavailable() => Self::Unreachable(error),
            error => Self::Refused(error),
        }
    }
}
