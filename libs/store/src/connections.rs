//! The connections of a process to Postgres: how many there may be, and why a statement gets none.
//!
//! sqlx's pool gives one error for a pool whose connections are all in use and for a server that can't be reached, and
//! keeps what it meets while it connects to itself. So a permit stands before each connection, and a statement that
//! waits for long has a further connection tried beside it.

use std::convert::Infallible;
use std::future::pending;
use std::io::ErrorKind;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions as _, Connection as _, PgPool, Postgres};
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

use crate::error::StoreError;
use crate::pooled_connection::{PING_AFTER_IDLE, PING_TIMEOUT};

/// How long a statement waits until there is a connection for it.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long it waits before another connection is tried, to learn why: not where Postgres is merely busy.
const PROBE_AFTER: Duration = Duration::from_secs(2);
/// Shortest time between two such tries of a process, which must not burden a busy server.
const PROBE_PAUSE: Duration = Duration::from_secs(5);
/// How long it is believed what a try met: longer than a statement waits after it.
const PROBE_VALID: Duration = Duration::from_secs(10);

/// Settings of every connection, by a statement: connection poolers refuse options at start-up. Statements are planned
/// once a connection, for any value and any number of rows: planning over all partitions costs more than running does,
/// and a table that was small when it was planned for may soon be large. Postgres looks each second whether the process
/// still waits for a statement, and gives up a connection over which the process is not heard of for 15 s: what either
/// left behind holds no lock.
const SETTINGS: &str = "
    SET statement_timeout = '30s';
    SET idle_in_transaction_session_timeout = '10s';
    SET client_connection_check_interval = '1s';
    SET tcp_keepalives_idle = 5;
    SET tcp_keepalives_interval = 5;
    SET tcp_keepalives_count = 2;
    SET tcp_user_timeout = '15s';
    SET jit = off;
    SET plan_cache_mode = force_generic_plan;
    SET enable_seqscan = off;
    SET enable_hashjoin = off;
    SET enable_mergejoin = off";

/// The pool, with a permit for each connection that it may have. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Connections {
    pool: PgPool,
    /// A permit is kept until its connection is back in the pool: whoever has one waits for nobody else's connection.
    permits: Arc<Semaphore>,
    probe: Arc<Probe>,
}

impl Connections {
    /// Connects lazily: whether Postgres is available shows at the first use.
    pub(crate) fn new(options: PgConnectOptions, max: u32) -> Self {
        let permits = Arc::new(Semaphore::new(max as usize));
        Self { pool: pool(options, max), permits, probe: Arc::default() }
    }

    /// The pool, for tests: a connection that is taken from it has no permit.
    pub(crate) fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// How many there may be.
    pub(crate) fn max(&self) -> u32 {
        self.pool.options().get_max_connections()
    }

    /// How to connect to the database.
    pub(crate) fn options(&self) -> PgConnectOptions {
        PgConnectOptions::clone(&self.pool.connect_options())
    }

    /// A connection, and the permit to keep until it is back in the pool, by `deadline` and within 5 s.
    ///
    /// # Errors
    /// [`StoreError::PoolExhausted`], where Postgres is well; else why it is not.
    pub(crate) async fn acquire(
        &self,
        deadline: Instant,
    ) -> Result<(PoolConnection<Postgres>, OwnedSemaphorePermit), StoreError> {
        let now = Instant::now();
        let deadline = deadline.min(now + ACQUIRE_TIMEOUT);
        let mut acquiring = pin!(async {
            let permit = Arc::clone(&self.permits).acquire_owned().await;
            let permit = permit.expect("the semaphore is never closed");
            Ok::<_, sqlx::Error>((self.pool.acquire().await?, permit))
        });
        let acquired = match timeout_at(deadline.min(now + PROBE_AFTER), &mut acquiring).await {
            Ok(acquired) => Some(acquired),
            Err(_) => tokio::select! {
                acquired = timeout_at(deadline, acquiring) => acquired.ok(),
                never = self.probe.run(self.options()) => match never {},
            },
        };
        let error = match acquired {
            Some(Ok(acquired)) => return Ok(acquired),
            None | Some(Err(sqlx::Error::PoolTimedOut)) => self.why_none(),
            Some(Err(error)) => error.into(),
        };
        let reason = match error {
            StoreError::PoolExhausted { .. } => "pool_exhausted",
            StoreError::Silent => "silent",
            _ => "unreachable",
        };
        count_failure(reason);
        Err(error)
    }

    /// Why there was no connection in time.
    fn why_none(&self) -> StoreError {
        match self.probe.obstacle() {
            Some(Obstacle::Silence) => StoreError::Silent,
            Some(Obstacle::Problem(problem)) => StoreError::Unreachable(problem),
            None if self.permits.available_permits() == 0 => {
                StoreError::PoolExhausted { connections: self.max() }
            }
            None => StoreError::Unreachable("no connection was made in time".into()),
        }
    }
}

/// Counts a statement that was given up.
pub(crate) fn count_failure(reason: &'static str) {
    metrics::counter!("tempmail_postgres_failures_total", "reason" => reason).increment(1);
}

/// What keeps this process from a connection to Postgres.
#[derive(Debug, Clone)]
enum Obstacle {
    /// The server accepts connections and says nothing.
    Silence,
    /// Something before that.
    Problem(String),
}

/// An attempt to connect beside the pool's, one at a time.
#[derive(Debug, Default)]
struct Probe {
    /// What the last attempt met, or waits for since then; `None` as obstacle where it succeeded.
    found: Mutex<Option<(Instant, Option<Obstacle>)>>,
    turn: tokio::sync::Mutex<()>,
}

impl Probe {
    /// The obstacle that an attempt met lately, or waits for.
    fn obstacle(&self) -> Option<Obstacle> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.as_ref().filter(|(at, _)| at.elapsed() < PROBE_VALID).and_then(|(_, found)| found.clone())
    }

    fn set(&self, obstacle: Option<Obstacle>) {
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), obstacle));
    }

    /// Whether an attempt was made a moment ago.
    fn is_recent(&self) -> bool {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.as_ref().is_some_and(|(at, _)| at.elapsed() < PROBE_PAUSE)
    }

    /// Tries to connect once, unless another attempt was made a moment ago. Never ends: it runs beside a statement that
    /// waits.
    async fn run(&self, options: PgConnectOptions) -> Infallible {
        let turn = self.turn.lock().await;
        if !self.is_recent() {
            let obstacle = self.connect(&options).await.err();
            self.set(obstacle);
        }
        drop(turn);
        pending().await
    }

    /// Connects in steps, and notes before each what is to blame if it does not end.
    async fn connect(&self, options: &PgConnectOptions) -> Result<(), Obstacle> {
        let (host, port) = (options.get_host(), options.get_port());
        // A socket of this machine has no name.
        if options.get_socket().is_none() && !host.starts_with('/') {
            let resolves =
                |problem: &str| Obstacle::Problem(format!("the name {host} is not resolved: {problem}"));
            self.set(Some(resolves("DNS does not answer")));
            let found = lookup_host((host, port)).await.map_err(|error| resolves(&error.to_string()))?;
            let addresses: Vec<_> = found.collect();
            let connects =
                |problem: &str| Obstacle::Problem(format!("no connection to {host}:{port}: {problem}"));
            self.set(Some(connects("there is no answer")));
            TcpStream::connect(&*addresses).await.map_err(|error| connects(&error.to_string()))?;
        }
        self.set(Some(Obstacle::Silence));
        let connecting = async {
            let mut connection = options.connect().await?;
            sqlx::raw_sql(SETTINGS).execute(&mut connection).await?;
            connection.close().await
        };
        connecting.await.map_err(|error: sqlx::Error| Obstacle::Problem(error.to_string()))
    }
}

fn pool(options: PgConnectOptions, max_connections: u32) -> PgPool {
    PgPoolOptions::new()
        .max_connections(max_connections)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .after_connect(|connection, _| {
            Box::pin(async move {
                sqlx::raw_sql(SETTINGS).execute(connection).await?;
                Ok(())
            })
        })
        // A connection that was used a moment ago needs no ping: reads are one round trip.
        .test_before_acquire(false)
        .before_acquire(|connection, meta| {
            Box::pin(async move {
                if meta.idle_for > PING_AFTER_IDLE {
                    let answered = timeout(PING_TIMEOUT, connection.ping()).await;
                    answered.map_err(|_| sqlx::Error::Io(ErrorKind::TimedOut.into()))??;
                }
                Ok(true)
            })
        })
        .connect_lazy_with(options)
}
