//! A connection that carries the actor of a change, for the audit trail.

use std::ops::{Deref, DerefMut};

use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, PgPool, Postgres};

use crate::actor::Actor;
use crate::error::StoreError;

/// A connection of the pool. One that carries an actor goes back to the pool by [`Self::release`] only: if it is
/// dropped before, it is closed, so that nobody else's change is recorded as the actor's.
pub(crate) struct ActingConnection {
    connection: PoolConnection<Postgres>,
    has_actor: bool,
}

impl ActingConnection {
    /// A connection that carries `actor`; without one it needs no further round trip.
    pub(crate) async fn acquire(pool: &PgPool, actor: Option<Actor>) -> Result<Self, StoreError> {
        let mut acting = Self { connection: pool.acquire().await?, has_actor: actor.is_some() };
        if let Some(actor) = actor {
            sqlx::query("/* set_actor */ SELECT set_config('tempmail.actor', $1, false)")
                .bind(actor.to_string())
                .execute(&mut *acting)
                .await?;
        }
        Ok(acting)
    }

    /// Gives the connection back to the pool, without its actor.
    pub(crate) async fn release(mut self) {
        if self.has_actor {
            // If it fails, the connection is closed.
            let reset = sqlx::query("/* reset_actor */ RESET tempmail.actor").execute(&mut *self).await;
            self.has_actor = reset.is_err();
        }
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
