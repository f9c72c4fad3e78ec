//! Who makes a change, for the audit trail. An operator acts for an object, which its statements name with the epoch;
//! other changes are made over a connection that carries the actor.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use sqlx::PgConnection;
use tokio::time::Instant;
use uuid::Uuid;

use crate::connections::Connections;
use crate::error::StoreError;
use crate::pooled_connection::{PooledConnection, answered};

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

/// A connection of the pool. One that carries an actor goes back to the pool by [`Self::release`] only: if it is
/// dropped before, it is closed, so that nobody else's change is recorded as the actor's.
pub(crate) struct ActingConnection {
    connection: PooledConnection,
    has_actor: bool,
}

impl ActingConnection {
    /// A connection that carries `actor`, by `deadline`; without one it needs no further round trip. `timeout` is as
    /// for [`PooledConnection::acquire`].
    pub(crate) async fn acquire(
        connections: &Connections,
        actor: Option<Actor>,
        deadline: Instant,
        timeout: Duration,
    ) -> Result<Self, StoreError> {
        let connection = PooledConnection::acquire(connections, deadline, timeout).await?;
        let mut acting = Self { connection, has_actor: actor.is_some() };
        if let Some(actor) = actor {
            let set = sqlx::query("/* set_actor */ SELECT set_config('tempmail.actor', $1, false)")
                .bind(actor.to_string());
            answered(deadline, set.execute(&mut *acting)).await?;
        }
        Ok(acting)
    }

    /// Gives the connection back to the pool, without its actor.
    pub(crate) async fn release(mut self) {
        if self.has_actor {
            let (deadline, reset) =
                (self.connection.deadline(), sqlx::query("/* reset_actor */ RESET tempmail.actor"));
            // If it fails, the connection is closed.
            self.has_actor = answered(deadline, reset.execute(&mut *self)).await.is_err();
        }
    }

    /// Closes the connection, which does not answer.
    pub(crate) fn discard(mut self) {
        self.connection.close_on_drop();
    }
}

impl Drop for ActingConnection {
    fn drop(&mut self) {
        if self.has_actor {
            self.connection.close_on_drop();
        }
    }
}

impl Deref for ActingConnection {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for ActingConnection {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}
