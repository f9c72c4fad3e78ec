//! Scheduled kills of an operator.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::{Executor as _, PgPool, PgTransaction};
use tempmail_tests::kubernetes::{ApiProxy, ApiRequest, OperatorProcess, StopPoint, StopReached, Team};
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// Where an operator is killed.
#[derive(Debug, Clone, Copy)]
pub(super) enum KillPoint {
    /// Before or after a write to the API server.
    Request(StopPoint),
    /// At a write to Postgres, which carries it out.
    Statement,
}

/// An operator that is killed at a certain write, unless the kill is disarmed before.
#[derive(Clone)]
pub(super) struct Victim {
    operator: OperatorProcess,
    // Locked during the kill, so that disarming waits for its end.
    state: Arc<Mutex<KillState>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KillState {
    Armed,
    Killed,
    Disarmed,
}

impl Victim {
    fn new(operator: &OperatorProcess) -> Self {
        Self { operator: operator.clone(), state: Arc::new(Mutex::new(KillState::Armed)) }
    }

    /// Kills it, unless that is disarmed; returns when it is gone.
    pub(super) fn kill(&self) {
        let mut state = self.state();
        if *state == KillState::Armed {
            self.operator.killer()();
            *state = KillState::Killed;
        }
    }

    /// Disarms the kill; whether it was killed before.
    fn disarm(&self) -> bool {
        let mut state = self.state();
        if *state == KillState::Armed {
            *state = KillState::Disarmed;
        }
        *state == KillState::Killed
    }

    fn state(&self) -> MutexGuard<'_, KillState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A kill that is scheduled.
pub(super) struct Kill {
    victim: Victim,
    stop: Stop,
}

/// What stops the write at which the operator is killed.
enum Stop {
    Request(StopReached),
    Statement(StatementGate),
}

impl Kill {
    /// At the `nth` write of a team's objects that passes a proxy.
    pub(super) fn at_request(
        team: &Team,
        nth: usize,
        point: StopPoint,
        proxy: &ApiProxy,
        operator: &OperatorProcess,
    ) -> Self {
        let (tenant, namespace) = (team.tenant.clone(), team.namespace.name().to_owned());
        let victim = Victim::new(operator);
        let (armed, killed) = (victim.clone(), victim.clone());
        let matches = move |request: &ApiRequest| {
            *armed.state() == KillState::Armed
                && (request.namespace.as_ref() == Some(&namespace) || request.name.as_ref() == Some(&tenant))
        };
        let reached = proxy.stop_at_matching_write(matches, nth, point, move || killed.kill());
        Self { victim, stop: Stop::Request(reached) }
    }

    /// At the `nth` statement from now on.
    pub(super) async fn at_statement(
        statements: &StatementCounter,
        nth: usize,
        operator: &OperatorProcess,
    ) -> Self {
        let victim = Victim::new(operator);
        let gate = statements.kill_at(nth, victim.clone()).await;
        Self { victim, stop: Stop::Statement(gate) }
    }

    /// Whether it happened.
    pub(super) fn has_happened(&self) -> bool {
        *self.victim.state() == KillState::Killed
    }

    /// Disarms it, so that later writes, such as a usage that is counted again, kill nothing, and returns when nothing stops
    /// another operator's writes. Whether it happened before.
    pub(super) async fn disarm(self) -> bool {
        let was_killed = self.victim.disarm();
        match self.stop {
            // The proxy closes its connections after the kill.
            Stop::Request(mut reached) if was_killed => reached.wait().await,
            Stop::Request(_) => {}
            Stop::Statement(gate) => gate.open().await,
        }
        was_killed
    }
}

/// Every statement by which an operator writes calls `lock_epoch` first. From the statement of the number
/// in `stop` on, they wait there for a lock that the test holds.
const COUNTER: &str = "
    CREATE SEQUENCE statement_number;
    CREATE TABLE stop (number bigint);
    INSERT INTO stop VALUES (NULL);
    ALTER FUNCTION lock_epoch(bigint, uuid) RENAME TO lock_epoch_without_stop;
    CREATE FUNCTION lock_epoch(p_epoch bigint, p_uid uuid) RETURNS boolean LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM lock_epoch_without_stop(p_epoch, p_uid);
        IF nextval('statement_number') >= (SELECT s.number FROM stop s) THEN
            PERFORM pg_advisory_xact_lock_shared(1);
        END IF;
        RETURN true;
    END $$;
    -- What the operator's login could do before.
    GRANT EXECUTE ON FUNCTION lock_epoch(bigint, uuid) TO tempmail_operator;
    GRANT SELECT ON stop TO tempmail_operator;
    GRANT USAGE ON SEQUENCE statement_number TO tempmail_operator;";

/// Time between two checks whether a statement waits.
const POLL: Duration = Duration::from_millis(20);

/// Counts the statements of the operators of a database.
pub(super) struct StatementCounter(PgPool);

impl StatementCounter {
    /// Installs it, before any operator starts.
    pub(super) async fn install(pool: &PgPool) -> Self {
        pool.execute(COUNTER).await.expect("the functions can be replaced");
        Self(pool.clone())
    }

    /// Kills an operator during its `nth` statement from now on, which Postgres then carries out.
    pub(super) async fn kill_at(&self, nth: usize, victim: Victim) -> StatementGate {
        let mut lock = self.0.begin().await.expect("Postgres answers");
        lock.execute("SELECT pg_advisory_xact_lock(1)").await.expect("the lock is free");
        set_stop(&self.0, Some(nth)).await;
        let opening = tokio::spawn(async move {
            while !is_waited_for(&mut lock).await {
                sleep(POLL).await;
            }
            victim.kill();
            lock.rollback().await.expect("the lock is released");
        });
        StatementGate { pool: self.0.clone(), opening }
    }
}

/// Stops statements until it is opened.
pub(super) struct StatementGate {
    pool: PgPool,
    opening: JoinHandle<()>,
}

impl StatementGate {
    /// Lets all statements pass.
    pub(super) async fn open(self) {
        set_stop(&self.pool, None).await;
        self.opening.abort();
        let _ = self.opening.await;
    }
}

async fn set_stop(pool: &PgPool, nth: Option<usize>) {
    let nth = nth.map(|nth| i64::try_from(nth).expect("a few statements"));
    let set =
        "WITH reset AS (SELECT setval('statement_number', 1, false)) UPDATE stop SET number = $1 FROM reset";
    sqlx::query(set).bind(nth).execute(pool).await.expect("Postgres answers");
}

async fn is_waited_for(lock: &mut PgTransaction<'_>) -> bool {
    let waits = "SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database
                                 WHERE d.datname = current_database() AND l.locktype = 'advisory'
                                   AND l.classid = 0 AND l.objid = 1 AND NOT l.granted)";
    sqlx::query_scalar(waits).fetch_one(&mut **lock).await.expect("Postgres answers")
}
