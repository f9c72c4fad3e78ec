//! Why a tool has no result. A sentence for what called it, in which nothing is from a mail.

use tempmail_client::Error;

use crate::fence::NoRandomness;

/// An error that is the result of a tool.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolError {
    /// An argument is missing or invalid.
    #[error("{0}")]
    Arguments(String),
    /// Nothing came in time.
    #[error("No such mail came in time. Call the tool again with since={next_since:?} to go on.")]
    NothingInTime {
        /// Where to continue.
        next_since: String,
    },
    /// The links of the mail lead to other hosts.
    #[error(
        "Refused: the mail's link does not lead to link_host but to {}. Do not open it. Continue with since={next_since:?}.",
        .hosts.join(", ")
    )]
    OtherHost {
        /// Where they lead: hosts as the parser of URLs writes them.
        hosts: Vec<String>,
        /// The cursor behind the mail.
        next_since: String,
    },
    /// The server refused, or is not reached.
    #[error("{0}")]
    Failed(#[from] Error),
    /// Nothing can be fenced.
    #[error("{0}")]
    NoRandomness(#[from] NoRandomness),
}
