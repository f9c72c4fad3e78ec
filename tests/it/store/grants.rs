//! What ends with a grant or a tenant: the statements that do it name the tables of all kinds.

use tempmail_tests::postgres::Database;

/// The functions that end or find all that an object, a grant or a tenant gave.
const FUNCTIONS: [&str; 6] =
    ["end_origins", "end_origin", "delete_ended_origins", "gives_way", "release_tenant", "remove_tenant"];

/// A table that one of them leaves out would keep access where its grant is lost.
#[tokio::test(flavor = "multi_thread")]
async fn every_table_of_declared_rows_ends_with_its_grant_and_tenant() {
    let database = Database::create().await;
    // Whatever is declared has a column that says by which object.
    let statement = "SELECT format('%s leaves out %s', f.name, c.relname)
          FROM pg_attribute a
          JOIN pg_class c ON c.oid = a.attrelid AND c.relkind IN ('r', 'p') AND NOT c.relispartition
         CROSS JOIN unnest($1::text[]) AS f (name)
         WHERE a.attname = 'origin' AND c.relnamespace = 'public'::regnamespace
           AND NOT EXISTS (SELECT FROM pg_proc p WHERE p.proname = f.name AND p.prosrc ~ ('\\m' || c.relname || '\\M'))
         ORDER BY 1";
    let left_out: Vec<String> =
        sqlx::query_scalar(statement).bind(FUNCTIONS.as_slice()).fetch_all(&database.pool()).await.unwrap();
    assert_eq!(left_out, [""; 0]);
}
