//! A connection of the pool that holds its place no longer than Postgres takes to answer.
//!
//! A server, or the network before it, may fall silent: connections stay open and nothing arrives. sqlx has no
//! end for a statement, none for the ping with which a connection goes back to its pool, and no access to the
//! socket, whose keepalive could tell. So each wait has its end here.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{Connection as _, PgConnection, Postgres};
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout, timeout_at};

use crate::connections::{Connections, count_failure};
use crate::error::StoreError;

/// A connection that was idle for longer is pinged before it is used again.
pub(crate) const PING_AFTER_IDLE: Duration = Duration::from_secs(2);
/// How long the answer to that ping may take; then the connection is closed.
pub(crate) const PING_TIMEOUT: Duration = Duration::from_secs(1);

/// See the module. Dropped, it goes back to the pool once Postgres has answered what it was sent, and is closed
/// if that does not happen in time.
#[derive(Debug)]
pub(crate) struct PooledConnection {
    connection: PoolConnection<Postgres>,
    /// Taken where the connection goes back to the pool.
    permit: Option<OwnedSemaphorePermit>,
    /// How long Postgres may take to answer.
    timeout: Duration,
    close_on_drop: bool,
    /// When the last statement was sent.
    used_at: Instant,
}

impl PooledConnection {
    /// A connection of the pool, by `deadline`; Postgres may take `timeout` to answer each statement.
    ///
    /// # Errors
    /// As [`Connections::acquire`], where there is none by then.
    pub(crate) async fn acquire(
        connections: &Connections,
        deadline: Instant,
        timeout: Duration,
    ) -> Result<Self, StoreError> {
        let (connection, permit) = connections.acquire(deadline).await?;
        Ok(Self { connection, permit: Some(permit), timeout, close_on_drop: false, used_at: Instant::now() })
    }

    /// When a statement that is sent now has to be answered.
    pub(crate) fn deadline(&mut self) -> Instant {
        self.used_at = Instant::now();
        self.used_at + self.timeout
    }

    /// Whether a connection that was kept still works; one that was idle is pinged.
    pub(crate) async fn is_alive(&mut self) -> bool {
        if self.used_at.elapsed() <= PING_AFTER_IDLE {
            return true;
        }
        let pinged = timeout(PING_TIMEOUT, self.connection.ping()).await;
        pinged.is_ok_and(|pinged| pinged.is_ok())
    }

    /// Has the connection closed when it is dropped, instead of going back to the pool: it has settings of its own, or
    /// its user keeps it and drops it only after an error.
    pub(crate) fn close_on_drop(&mut self) {
        self.close_on_drop = true;
    }

    /// Closes the connection now; it must not be used afterwards.
    pub(crate) fn close(&mut self) {
        // A connection on its way back to the pool is closed where it does not arrive.
        drop(self.connection.return_to_pool());
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        if self.close_on_drop {
            return self.close();
        }
        let (limit, returned, permit) = (self.timeout, self.connection.return_to_pool(), self.permit.take());
        // At the end of a process there is no runtime: the connection is closed.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                let _ = timeout(limit, returned).await;
                drop(permit);
            });
        }
    }
}

impl Deref for PooledConnection {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for PooledConnection {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}

/// The answer to a statement, by `deadline`.
///
/// # Errors
/// [`StoreError::Silent`] where there is none by then: whether the statement had an effect is not known, and the
/// connection must be closed.
pub(crate) async fn answered<T, E>(
    deadline: Instant,
    statement: impl Future<Output = Result<T, E>>,
) -> Result<T, StoreError>
where
    StoreError: From<E>,
{
    match timeout_at(deadline, statement).await {
        Ok(answer) => Ok(answer?),
        Err(_) => {
            count_failure("silent");
            Err(StoreError::Silent)
        }
    }
}
