//! A login of the server that nobody granted anything.

use sqlx::PgPool;
use tempmail_tests::App;

use super::{DENIED, create_login, refusal, run};

/// A call of each function, whose arguments are null.
const CALLS: &str = "
    SELECT format('SELECT %s(%s)', p.oid::regproc,
                  (SELECT string_agg('NULL::' || format_type(a.type, NULL), ', ' ORDER BY a.number)
                     FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY a (type, number)))
      FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace";

/// Reads and changes of each table and view, partitions included.
const STATEMENTS: &str = "
    SELECT format(s.statement, c.oid::regclass, a.attname)
      FROM pg_class c
      JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = 1
     CROSS JOIN unnest(ARRAY['SELECT %1$s.%2$I FROM %1$s', 'INSERT INTO %1$s DEFAULT VALUES',
                             'UPDATE %1$s SET %2$I = NULL', 'DELETE FROM %1$s', 'TRUNCATE %1$s',
                             'SELECT FROM %1$s FOR UPDATE', 'DROP TABLE %1$s']) s (statement)
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v')
       AND NOT (c.relkind = 'v' AND s.statement ~ 'TRUNCATE|DROP')";

async fn assert_denied(pool: &PgPool, statements: &[String]) {
    for statement in statements {
        assert_eq!(refusal(pool, statement).await.as_deref(), Some(DENIED), "{statement}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_without_grants_can_do_nothing() {
    let app = App::start().await;
    app.deliver(&format!("any@{}", tempmail_tests::app::SYSTEM_DOMAIN), "kept", "a text").await;
    let (login, url) = create_login(app.database(), "stranger", "").await;
    let stranger = PgPool::connect(&url).await.unwrap();

    let calls: Vec<String> = sqlx::query_scalar(CALLS).fetch_all(&app.pool).await.unwrap();
    assert!(calls.len() > 60, "{calls:#?}");
    assert_denied(&stranger, &calls).await;
    let statements: Vec<String> = sqlx::query_scalar(STATEMENTS).fetch_all(&app.pool).await.unwrap();
    assert!(statements.len() > 150 && statements.iter().any(|text| text.contains("message_1_")));
    assert_denied(&stranger, &statements).await;
    assert_denied(&stranger, &["CREATE TABLE mine (x integer)", "CREATE SCHEMA mine"].map(str::to_owned))
        .await;
    assert_eq!(app.count("SELECT count(*) FROM message").await, 1);

    stranger.close().await;
    run(&app.pool, &format!("DROP ROLE {login}")).await;
}
