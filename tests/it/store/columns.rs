//! Columns that a later schema adds: functions and views of this one do not see them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures_util::future::join_all;
use reqwest::Method;
use sqlx::{AssertSqlSafe, Executor as _};
use tempmail_tests::App;
use tempmail_tests::postgres::Database;
use tempmail_tests::wait::eventually;

const ADDRESS: &str = "ship@inbox.localhost";
/// Answers of each route after a column was added, by each of two clients at least.
const ANSWERS: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn no_function_returns_rows_of_a_table_or_view() {
    let database = Database::create().await;
    // Also of an array of rows, and of an OUT parameter.
    let statement = "SELECT format('%s returns %s', p.oid::regprocedure, c.relname)
          FROM pg_proc p
         CROSS JOIN LATERAL unnest(coalesce(p.proallargtypes, '{}') || p.prorettype) WITH ORDINALITY AS a (type, number)
          JOIN pg_type t ON t.oid = a.type
          JOIN pg_type e ON e.oid = coalesce(nullif(t.typelem, 0), t.oid)
          JOIN pg_class c ON c.oid = e.typrelid AND c.relkind <> 'c'
         WHERE p.pronamespace = 'public'::regnamespace
           AND coalesce(p.proargmodes[a.number], 'o') <> 'i'
         ORDER BY 1";
    let found: Vec<String> = sqlx::query_scalar(statement).fetch_all(&database.pool()).await.unwrap();
    assert!(found.is_empty(), "name the columns, as in RETURNS TABLE (…): {found:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn serves_while_columns_are_added() {
    let app = App::start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), ADDRESS).await;
    app.deliver(ADDRESS, "before", "").await;
    let requests = || {
        [
            app.request(Method::GET, &format!("/v1/inbox/{ADDRESS}")).live(&app.tenant.live),
            app.request(Method::GET, "/v1/me").live(&app.tenant.live),
            app.request(Method::GET, "/api/messages").bearer(&mailbox.jwt),
            app.request(Method::GET, &format!("/api/messages/{}", mailbox.id)).bearer(&mailbox.jwt),
        ]
    };
    let (answers, ends) = (AtomicUsize::new(0), AtomicBool::new(false));
    let client = async || {
        while !ends.load(Ordering::Relaxed) {
            for request in requests() {
                let answer = request.send().await;
                assert!(answer.status < 500, "{}: {}", answer.status, answer.json());
            }
            answers.fetch_add(1, Ordering::Relaxed);
        }
    };
    let more_answers = async || {
        let expected = answers.load(Ordering::Relaxed) + ANSWERS;
        eventually("all routes answer", || async {
            (answers.load(Ordering::Relaxed) >= expected).then_some(())
        })
        .await;
    };
    let add_columns = async {
        more_answers().await;
        for table in ["message", "mailbox", "domain", "tenant", "usage", "purge", "raw", "webhook"] {
            let statement = format!("ALTER TABLE {table} ADD COLUMN of_next text");
            app.pool.execute(AssertSqlSafe(statement)).await.unwrap();
            more_answers().await;
        }
        ends.store(true, Ordering::Relaxed);
    };
    tokio::join!(add_columns, join_all((0..2).map(|_| client())));

    app.deliver(ADDRESS, "after", "").await;
    for request in requests().into_iter().take(3) {
        let answer = request.send().await.expect(200);
        assert!(answer.to_string().contains("\"after\""), "{answer}");
    }
}
