//! The database, and how statements run.

use std::time::Duration;

use futures_util::TryStreamExt as _;
use jiff::{SignedDuration, Timestamp};
use sqlx::postgres::{PgArguments, PgConnectOptions, PgRow};
use sqlx::query::Query;
use sqlx::{Connection as _, Either, Execute as _, Executor as _, PgConnection, PgPool, Postgres};
use tokio::time::Instant;

use crate::actor::{ActingConnection, Actor};
use crate::connections::Connections;
use crate::error::StoreError;
use crate::pooled_connection::{PooledConnection, answered};
use crate::row::first_column;

/// How long this process waits for the answer to a statement, unless set otherwise: longer than Postgres works on it
/// (`statement_timeout`), so a statement ends here only where Postgres, or the network before it, is silent.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(31);

/// A statement with its arguments.
pub(crate) type Statement<'q> = Query<'q, Postgres, PgArguments>;

/// A pool of connections to the database. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    connections: Connections,
    /// Who makes the changes, for the audit trail; `None`: the process itself.
    actor: Option<Actor>,
    /// How long a statement may take, with the time until there is a connection for it.
    timeout: Duration,
}

impl Store {
    /// Connects lazily: whether Postgres is available shows at the first use.
    ///
    /// `application_name` is the name of this process in `pg_stat_activity`.
    ///
    /// # Errors
    /// `url` is not a Postgres URL.
    pub fn connect(url: &str, max_connections: u32, application_name: &str) -> Result<Self, StoreError> {
        let options: PgConnectOptions = url.parse()?;
        // Poolers refuse a number of digits, too; it is for text, and all values are binary.
        let options = options.application_name(application_name).extra_float_digits(None);
        Ok(Self {
            connections: Connections::new(options, max_connections),
            actor: None,
            timeout: STATEMENT_TIMEOUT,
        })
    }

    /// The same database over a pool of its own with up to `max_connections`, for statements that must not
    /// wait behind requests.
    #[must_use]
    pub fn with_own_pool(&self, max_connections: u32) -> Self {
        let connections = Connections::new(self.connections.options(), max_connections);
        Self { connections, actor: None, timeout: self.timeout }
    }

    /// The same connections, for statements that are given up after `timeout` (with [`StoreError::Silent`] once they
    /// have a connection), in which the time until there is one is included. Without it, that is 31 s: longer than
    /// Postgres lets a statement run.
    #[must_use]
    pub fn within(&self, timeout: Duration) -> Self {
        Self { timeout, ..self.clone() }
    }

    /// The same database, for changes that somebody else makes: they are recorded as the actor's.
    #[must_use]
    pub fn acting(&self, actor: Actor) -> Self {
        Self { actor: Some(actor), ..self.clone() }
    }

    /// The connections, for statements of this crate and of tests.
    pub fn pool(&self) -> &PgPool {
        self.connections.pool()
    }

    /// How many connections there may be.
    pub fn max_connections(&self) -> u32 {
        self.connections.max()
    }

    /// A connection that the caller keeps.
    pub(crate) async fn acquire(&self) -> Result<PooledConnection, StoreError> {
        PooledConnection::acquire(&self.connections, Instant::now() + self.timeout, self.timeout).await
    }

    /// Runs a statement for its effect.
    pub(crate) async fn execute(&self, statement: Statement<'_>) -> Result<(), StoreError> {
        self.affected_rows(statement).await.map(drop)
    }

    /// Runs a statement for its effect; `false` where it was not granted a lock in time and did nothing.
    pub(crate) async fn execute_unless_locked(&self, statement: Statement<'_>) -> Result<bool, StoreError> {
        match self.execute(statement).await {
            Ok(()) => Ok(true),
            Err(error) if error.is_lock_timeout() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Runs a statement; returns how many rows it changed.
    pub(crate) async fn affected_rows(&self, statement: Statement<'_>) -> Result<u64, StoreError> {
        Ok(self.run(statement).await?.0)
    }

    /// The first column of the one row of the result.
    pub(crate) async fn fetch_value<T>(&self, statement: Statement<'_>) -> Result<T, StoreError>
    where
        T: for<'r> sqlx::Decode<'r, Postgres> + sqlx::Type<Postgres>,
    {
        self.fetch_one(statement, first_column).await
    }

    /// The one row of the result.
    pub(crate) async fn fetch_one<T>(
        &self,
        statement: Statement<'_>,
        from_row: impl FnOnce(&PgRow) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.fetch_optional(statement, from_row).await?.ok_or_else(|| sqlx::Error::RowNotFound.into())
    }

    /// The row of the result, if it has one.
    pub(crate) async fn fetch_optional<T>(
        &self,
        statement: Statement<'_>,
        from_row: impl FnOnce(&PgRow) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        self.fetch_rows(statement).await?.first().map(from_row).transpose()
    }

    /// All rows of the result.
    pub(crate) async fn fetch_all<T>(
        &self,
        statement: Statement<'_>,
        from_row: impl Fn(&PgRow) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        self.fetch_rows(statement).await?.iter().map(from_row).collect()
    }

    /// All rows of the result.
    pub(crate) async fn fetch_rows(&self, statement: Statement<'_>) -> Result<Vec<PgRow>, StoreError> {
        Ok(self.run(statement).await?.1)
    }

    /// Waits until what earlier transactions changed is on disk, also those that did not wait for it so that nobody
    /// waits for their locks meanwhile.
    pub(crate) async fn flush(&self) -> Result<(), StoreError> {
        // Its commit waits for all that was written to the log before. Text: sqlx would ask what a position of the
        // log is.
        self.execute(sqlx::query("/* flush */ SELECT pg_logical_emit_message(true, 'tempmail', '')::text"))
            .await
    }

    /// Runs a statement; returns how many rows it changed, and those of the result. It is repeated once where a
    /// migration changed what the connection had planned it for. All of that has one end.
    async fn run(&self, mut statement: Statement<'_>) -> Result<(u64, Vec<PgRow>), StoreError> {
        // Boxed: a future that runs a statement now and then does not keep the memory for it.
        Box::pin(async move {
            let arguments = statement.take_arguments().map_err(sqlx::Error::Encode)?.unwrap_or_default();
            let text = statement.sql();
            let deadline = Instant::now() + self.timeout;
            let mut connection =
                ActingConnection::acquire(&self.connections, self.actor, deadline, self.timeout).await?;
            let running = async {
                match run_over(&mut connection, sqlx::query_with(text.clone(), arguments.clone())).await {
                    Err(error) if error.is_plan_outdated() => {
                        connection.clear_cached_statements().await?;
                        run_over(&mut connection, sqlx::query_with(text, arguments)).await
                    }
                    ended => ended,
                }
            };
            let ended = answered(deadline, running).await;
            match ended {
                Err(StoreError::Silent) => connection.discard(),
                _ => connection.release().await,
            }
            ended
        })
        .await
    }
}

async fn run_over(
    connection: &mut PgConnection,
    statement: Statement<'_>,
) -> Result<(u64, Vec<PgRow>), StoreError> {
    let (mut affected, mut rows) = (0, Vec::new());
    let mut results = connection.fetch_many(statement);
    while let Some(result) = results.try_next().await? {
        match result {
            Either::Left(ended) => affected += ended.rows_affected(),
            Either::Right(row) => rows.push(row),
        }
    }
    Ok((affected, rows))
}

impl Store {
    /// How far the clock of Postgres is ahead of `local`, the clock of this machine, and the duration of the round
    /// trip. The offset is exact to half of the round trip.
    pub async fn clock_offset(
        &self,
        local: impl Fn() -> Timestamp + Send,
    ) -> Result<(SignedDuration, SignedDuration), StoreError> {
        let mut connection = self.acquire().await?;
        let sent_at = local();
        let asked = sqlx::query_scalar("/* clock_offset */ SELECT clock_timestamp()");
        let answer = answered(connection.deadline(), asked.fetch_one(&mut *connection)).await;
        let server_time: jiff_sqlx::Timestamp = answer.inspect_err(|_| connection.close_on_drop())?;
        let round_trip = local().duration_since(sent_at);
        let middle = sent_at + round_trip / 2;
        Ok((server_time.to_jiff().duration_since(middle), round_trip))
    }
}
