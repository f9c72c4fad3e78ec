//! A Postgres whose commits wait: for a standby that is not there, as they would for a slow disk.

use std::pin::pin;

use futures_util::poll;
use sqlx::PgPool;
use tempmail_tests::App;
use tempmail_tests::postgres::{DedicatedPostgres, REPLICATION};
use tempmail_tests::wait::eventually;
use tokio::task::JoinHandle;

const ADDRESS: &str = "box@inbox.localhost";

/// Commits that wait, until [`Self::end`].
struct WaitingCommits {
    pool: PgPool,
    /// Commits without end, to see whether one waits.
    committing: JoinHandle<()>,
}

impl WaitingCommits {
    async fn begin(pool: &PgPool) -> Self {
        let committing = tokio::spawn({
            let pool = pool.clone();
            async move {
                loop {
                    let commit = "/* probe */ SELECT pg_logical_emit_message(true, 'probe', '')";
                    sqlx::query(commit).execute(&pool).await.expect("Postgres answers");
                }
            }
        });
        let waiting = Self { pool: pool.clone(), committing };
        waiting.set("ALTER SYSTEM SET synchronous_standby_names = 'absent'").await;
        waiting.wait_for("probe").await;
        waiting
    }

    async fn end(self) {
        self.committing.abort();
        self.set("ALTER SYSTEM RESET synchronous_standby_names").await;
    }

    async fn set(&self, statement: &'static str) {
        for statement in [statement, "SELECT pg_reload_conf()"] {
            sqlx::query(statement).execute(&self.pool).await.expect("Postgres answers");
        }
    }

    /// Waits until the commit waits of a statement with one of these names.
    async fn wait_for(&self, names: &str) {
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query ~ $1";
        eventually("a commit waits", || async {
            let query = sqlx::query_scalar(waiting).bind(format!(r"/\* ({names}) \*/"));
            let count: i64 = query.fetch_one(&self.pool).await.expect("Postgres answers");
            (count > 0).then_some(())
        })
        .await;
    }
}

/// All mail waits for the locks of a deletion, and need not wait for its commit.
#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_is_answered_after_its_commit_and_holds_no_lock_meanwhile() {
    let postgres = DedicatedPostgres::start_with(&REPLICATION).await;
    let app = App::builder().database(postgres.database().await).start().await;
    app.mailbox(Some(&app.tenant.pro), ADDRESS).await;
    app.deliver(ADDRESS, "one", "").await;
    app.deliver(ADDRESS, "two", "").await;
    let id = app.emails(ADDRESS).await[0]["id"].as_str().unwrap().to_owned();

    for path in [format!("/v1/email/{id}"), format!("/v1/inbox/{ADDRESS}")] {
        let commits = WaitingCommits::begin(&app.pool).await;
        let mut deletion = pin!(app.delete(&path));
        tokio::select! {
            answer = &mut deletion => panic!("{path}: {} before its commit", answer.status),
            () = commits.wait_for("delete_message|clear_inbox|flush") => {}
        }
        let mut locks = app.pool.begin().await.unwrap();
        for table in ["message_partition", "usage"] {
            let lock = sqlx::AssertSqlSafe(format!("SELECT FROM {table} FOR UPDATE NOWAIT"));
            sqlx::query(lock).execute(&mut *locks).await.unwrap_or_else(|error| panic!("{path}: {error}"));
        }
        locks.rollback().await.unwrap();
        assert!(poll!(deletion.as_mut()).is_pending(), "{path}");
        commits.end().await;
        assert_eq!(deletion.await.status, 204, "{path}");
    }
    app.assert_inbox_is_empty(ADDRESS).await;
}
