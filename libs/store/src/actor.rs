//! Who makes a change, for the audit trail.

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
    /// A Kubernetes object, by its uid.
    Object(Uuid),
    /// A command of the program.
    Command,
}

impl fmt::Display for Actor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(id) => write!(formatter, "token {id}"),
            Self::Session(token) => write!(formatter, "session of token {token}"),
            Self::Mailbox(id) => write!(formatter, "mailbox {id}"),
            Self::Object(uid) => write!(formatter, "object {uid}"),
            Self::Command => formatter.write_str("command"),
        }
    }
}
