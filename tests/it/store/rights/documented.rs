//! The tables of `docs/operations.md`, compared with what the server says of each group role and each object.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use sqlx::PgPool;
use tempmail_model::role_prefix::RolePrefix;
use tempmail_tests::postgres::Database;

use super::{ROLES, migrate_as_owner, prefix, run};

/// What each of some roles ($1) may do at each table and view: of the whole, or of columns.
const AT_TABLES: &str = "
    SELECT c.relname::text, r.name,
           CASE WHEN has_table_privilege(r.name, c.oid, p.privilege) THEN p.privilege
                ELSE format('%s (%s)', p.privilege, x.columns) END
      FROM pg_class c
     CROSS JOIN unnest($1::text[]) r (name)
     CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER'])
                WITH ORDINALITY p (privilege, number)
     CROSS JOIN LATERAL (
         SELECT string_agg(format('`%s`', a.attname), ', ' ORDER BY a.attnum) AS columns FROM pg_attribute a
          WHERE a.attrelid = c.oid AND a.attnum > 0 AND p.privilege IN ('SELECT', 'INSERT', 'UPDATE', 'REFERENCES')
            AND has_column_privilege(r.name, c.oid, a.attnum, p.privilege)) x
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v')
       AND (x.columns IS NOT NULL OR has_table_privilege(r.name, c.oid, p.privilege))
     ORDER BY c.relname COLLATE \"C\", p.number";

/// The functions that each of some roles ($1) may execute.
const AT_FUNCTIONS: &str = "
    SELECT r.name, p.proname::text FROM pg_proc p CROSS JOIN unnest($1::text[]) r (name)
     WHERE p.pronamespace = 'public'::regnamespace AND has_function_privilege(r.name, p.oid, 'EXECUTE')
     ORDER BY p.proname COLLATE \"C\"";

/// Functions that a function which runs with the caller's rights names, and that a role ($1) may not execute although it
/// may execute the first.
const LACKING: &str = "
    SELECT format('%s calls %s', f.proname, g.proname) FROM pg_proc f JOIN pg_proc g
        ON g.pronamespace = f.pronamespace AND f.oid <> g.oid AND f.prosrc ~ ('\\y' || g.proname || '\\(')
     WHERE f.pronamespace = 'public'::regnamespace AND NOT f.prosecdef
       AND has_function_privilege($1, f.oid, 'EXECUTE') AND NOT has_function_privilege($1, g.oid, 'EXECUTE')";

/// The names of the group roles, in the order of [`ROLES`].
pub(super) fn group_roles(prefix: &RolePrefix) -> Vec<String> {
    ROLES.iter().map(|role| format!("{prefix}_{role}")).collect()
}

/// The two tables of the document, as the server says.
pub(super) async fn tables(pool: &PgPool, prefix: &RolePrefix) -> String {
    let groups = group_roles(prefix);
    let rows: Vec<(String, String, String)> =
        sqlx::query_as(AT_TABLES).bind(&groups).fetch_all(pool).await.unwrap();
    let mut cells: BTreeMap<String, [Vec<String>; 4]> = BTreeMap::new();
    for (table, group, privilege) in rows {
        let role = groups.iter().position(|name| *name == group).unwrap();
        cells.entry(table).or_default()[role].push(privilege);
    }
    let mut text = format!("| Table or view | `{}` |\n|---|---|---|---|---|\n", ROLES.join("` | `"));
    for (table, cells) in cells {
        let cells = cells.map(|privileges| privileges.join(", "));
        writeln!(text, "| `{table}` | {} |", cells.join(" | ")).unwrap();
    }
    let rows: Vec<(String, String)> =
        sqlx::query_as(AT_FUNCTIONS).bind(&groups).fetch_all(pool).await.unwrap();
    text.push_str("\n| Role | Functions |\n|---|---|\n");
    for (role, group) in ROLES.iter().zip(&groups) {
        let names =
            rows.iter().filter(|(name, _)| name == group).map(|(_, function)| format!("`{function}`"));
        writeln!(text, "| `{role}` | {} |", names.collect::<Vec<_>>().join(", ")).unwrap();
    }
    text
}

/// The tables as the document has them.
pub(super) fn documented() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operations.md");
    let document = std::fs::read_to_string(path).unwrap();
    let (_, rest) = document.split_once("\n| Table or view |").expect("the document has the tables");
    let (first, second) = rest.split_once("\n| Role | Functions |\n").expect("there are two");
    let (second, _) = second.split_once("\n\n").expect("a text follows");
    format!("| Table or view |{first}\n| Role | Functions |\n{second}\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn each_role_has_exactly_the_documented_rights() {
    let database = Database::empty().await;
    let (pool, prefix) = (database.pool(), prefix());
    migrate_as_owner(&database, &prefix).await;
    // Partitions are reached through their tables.
    run(&pool, "SELECT ensure_message_partition(1::smallint, now()), ensure_delivery_partition(now())").await;
    let actual = tables(&pool, &prefix).await;
    assert!(actual == documented(), "docs/operations.md should have:\n{actual}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_role_may_call_what_its_functions_call() {
    let database = Database::empty().await;
    let (pool, prefix) = (database.pool(), prefix());
    migrate_as_owner(&database, &prefix).await;
    for group in group_roles(&prefix) {
        let lacking: Vec<String> = sqlx::query_scalar(LACKING).bind(&group).fetch_all(&pool).await.unwrap();
        assert_eq!(lacking, [""; 0], "{group}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn revokes_what_is_granted_beyond_the_table() {
    let database = Database::empty().await;
    let (pool, prefix) = (database.pool(), prefix());
    migrate_as_owner(&database, &prefix).await;
    run(&pool, "SELECT ensure_message_partition(1::smallint, now())").await;
    let partition: String =
        sqlx::query_scalar("SELECT relname::text FROM pg_class WHERE relname ~ '^message_1_'")
            .fetch_one(&pool)
            .await
            .unwrap();
    let [ingest, api, worker, operator] = <[String; 4]>::try_from(group_roles(&prefix)).unwrap();
    for grant in [
        format!("GRANT UPDATE, TRUNCATE ON message TO {ingest}"),
        format!("GRANT SELECT (password_hash) ON mailbox TO {worker}"),
        format!("GRANT SELECT ON tenant TO {api} WITH GRANT OPTION"),
        format!("GRANT SELECT ON {partition} TO {operator}"),
        format!("GRANT EXECUTE ON FUNCTION drop_detached_partitions() TO {api}"),
        format!("GRANT CREATE ON SCHEMA public TO {worker}"),
        format!("REVOKE UPDATE (seq) ON stream FROM {ingest}"),
        format!("REVOKE SELECT ON message FROM {api}"),
        format!("REVOKE EXECUTE ON FUNCTION lock_epoch(bigint, uuid) FROM {operator}"),
        "GRANT ALL ON message, visible_message TO PUBLIC".to_owned(),
        "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO PUBLIC".to_owned(),
        "GRANT CREATE ON SCHEMA public TO PUBLIC".to_owned(),
    ] {
        run(&pool, &grant).await;
    }
    migrate_as_owner(&database, &prefix).await;
    let actual = tables(&pool, &prefix).await;
    assert!(actual == documented(), "{actual}");
    let left: Vec<String> = sqlx::query_scalar(
        "SELECT format('%s %s', g.name, 'creates') FROM unnest($1::text[] || 'public'::text) g (name)
          WHERE has_schema_privilege(g.name, 'public', 'CREATE')
         UNION ALL
         SELECT format('%s grants', c.relname) FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
          WHERE a.is_grantable AND a.grantee <> c.relowner",
    )
    .bind(group_roles(&prefix))
    .fetch_all(&pool)
    .await
    .unwrap();
    assert_eq!(left, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn grants_what_public_does_not_have_any_more() {
    let database = Database::empty().await;
    let (pool, prefix) = (database.pool(), prefix());
    let name: String = sqlx::query_scalar("SELECT current_database()::text").fetch_one(&pool).await.unwrap();
    run(
        &pool,
        &format!("REVOKE ALL ON DATABASE {name} FROM PUBLIC; REVOKE ALL ON SCHEMA public FROM PUBLIC"),
    )
    .await;
    migrate_as_owner(&database, &prefix).await;
    let reaching: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM unnest($1::text[]) g (name)
          WHERE has_schema_privilege(g.name, 'public', 'USAGE')
            AND has_database_privilege(g.name, current_database(), 'CONNECT')
            AND NOT has_database_privilege(g.name, current_database(), 'TEMPORARY')",
    )
    .bind(group_roles(&prefix))
    .fetch_one(&pool)
    .await
    .unwrap();
    assert_eq!(reaching, 4);
}
