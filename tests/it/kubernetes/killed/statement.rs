//! Kills after what an operator writes to Postgres, before it knows that it is written.

use std::time::Duration;

use sqlx::{Executor as _, PgPool, PgTransaction};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::kill::Victim;

/// Every statement by which an operator writes holds its epoch first. The one whose turn it is waits
/// there for the test, and so do those after it.
const TURNS: &str = "
    CREATE SEQUENCE turn;
    CREATE TABLE stops_at (turn bigint);
    INSERT INTO stops_at VALUES (NULL);
    ALTER FUNCTION hold_epoch(bigint) RENAME TO hold_epoch_at_once;
    CREATE FUNCTION hold_epoch(p_epoch bigint) RETURNS boolean LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM hold_epoch_at_once(p_epoch);
        IF nextval('turn') >= (SELECT s.turn FROM stops_at s) THEN
            PERFORM pg_advisory_xact_lock_shared(1);
        END IF;
        RETURN true;
    END $$;";

/// Time between two looks whether it waits.
const LOOK: Duration = Duration::from_millis(20);

/// The statements of the operators of a database.
pub(super) struct Statements(PgPool);

impl Statements {
    /// Before any operator begins.
    pub(super) async fn of(pool: &PgPool) -> Self {
        pool.execute(TURNS).await.expect("the functions are ours");
        Self(pool.clone())
    }

    /// Kills in the middle of the `nth` statement from now on, which comes to its end then.
    pub(super) async fn kill_at(&self, nth: usize, victim: Victim) -> Gate {
        let mut gate = self.0.begin().await.expect("Postgres answers");
        gate.execute("SELECT pg_advisory_xact_lock(1)").await.expect("nobody has it");
        stop_at(&self.0, Some(nth)).await;
        let opened = tokio::spawn(async move {
            while !is_waited_for(&mut gate).await {
                sleep(LOOK).await;
            }
            victim.kill();
            gate.rollback().await.expect("the gate opens");
        });
        Gate { pool: self.0.clone(), opened }
    }
}

/// What statements wait at.
pub(super) struct Gate {
    pool: PgPool,
    opened: JoinHandle<()>,
}

impl Gate {
    /// No statement waits any more.
    pub(super) async fn open(self) {
        stop_at(&self.pool, None).await;
        self.opened.abort();
        let _ = self.opened.await;
    }
}

async fn stop_at(pool: &PgPool, nth: Option<usize>) {
    let nth = nth.map(|nth| i64::try_from(nth).expect("a few statements"));
    let set = "WITH begun AS (SELECT setval('turn', 1, false)) UPDATE stops_at SET turn = $1 FROM begun";
    sqlx::query(set).bind(nth).execute(pool).await.expect("Postgres answers");
}

async fn is_waited_for(gate: &mut PgTransaction<'_>) -> bool {
    let waits = "SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database
                                 WHERE d.datname = current_database() AND l.locktype = 'advisory'
                                   AND l.classid = 0 AND l.objid = 1 AND NOT l.granted)";
    sqlx::query_scalar(waits).fetch_one(&mut **gate).await.expect("Postgres answers")
}
