//! Who makes a change, for the audit trail. An operator acts for an object, which its statements name with the epoch.

use std::fmt;

use uuid::Uuid;

/// Who makes a change. Displayed as it is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    /// An API token.
    Token(Uuid),
    /// A Pro session, by the token that it belongs to.
    Session(Uuid),
    /// A mailbox, by its JWT.
    Mailbox(Uuid),
    /// A command of the program.
    Command,
}

impl fmt::Display for Actor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(id) => write!(formatter, "token {id}"),
            Self::Session(token) => write!(formatter, "session of token {token}"),
            Self::Mailbox(id) => write!(formatter, "mailbox {id}"),
            Self::Command => formatter.write_str("command"),
        }
    }
}
