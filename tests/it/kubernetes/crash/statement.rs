//! Kills after a statement that an operator sends to Postgres, before the operator gets the answer.

use std::time::Duration;

use sqlx::{Executor as _, PgPool, PgTransaction};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::kill::Victim;

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
