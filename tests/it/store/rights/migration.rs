//! How `migrate` makes the group roles, or says how to make them.

use sqlx::PgPool;
use tempmail_model::role_prefix::RolePrefix;
use tempmail_store::{GroupRole, Store};
use tempmail_tests::CommandOutput;
use tempmail_tests::postgres::Database;

use super::documented::{documented, group_roles, tables};
use super::{create_login, migrate, migrate_as_owner, prefix, run};

/// Every row of the catalogue that a grant writes, and who wrote it.
const WRITTEN: &str = "
    SELECT format('%s %s %s', c.oid::regclass, c.relacl, c.xmin) FROM pg_class c
     WHERE c.relnamespace = 'public'::regnamespace
    UNION ALL
    SELECT format('%s %s %s %s', a.attrelid::regclass, a.attname, a.attacl, a.xmin)
      FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid WHERE c.relnamespace = 'public'::regnamespace
    UNION ALL
    SELECT format('%s %s %s', p.oid::regprocedure, p.proacl, p.xmin) FROM pg_proc p
     WHERE p.pronamespace = 'public'::regnamespace
    UNION ALL
    SELECT format('%s %s %s', n.nspname, n.nspacl, n.xmin) FROM pg_namespace n
    UNION ALL
    SELECT format('%s %s %s', d.defaclobjtype, d.defaclacl, d.xmin) FROM pg_default_acl d
     ORDER BY 1";

async fn written(pool: &PgPool) -> Vec<String> {
    sqlx::query_scalar(WRITTEN).fetch_all(pool).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_migration_changes_no_right() {
    let database = Database::empty().await;
    let (pool, prefix) = (database.pool(), prefix());
    migrate_as_owner(&database, &prefix).await;
    let before = written(&pool).await;
    migrate_as_owner(&database, &prefix).await;
    assert!(written(&pool).await == before);
}

#[tokio::test(flavor = "multi_thread")]
async fn prints_what_it_may_not_do_and_works_once_it_is_done() {
    let database = Database::empty().await;
    let (pool, prefix) = (database.pool(), prefix());
    let (owner, url) = create_login(&database, "owner", "NOCREATEROLE").await;
    let name: String = sqlx::query_scalar("SELECT current_database()::text").fetch_one(&pool).await.unwrap();
    run(&pool, &format!("ALTER DATABASE {name} OWNER TO {owner}")).await;

    let first = migrate(&url, &prefix).await;
    let expected: String =
        group_roles(&prefix).iter().map(|group| format!("CREATE ROLE {group} NOLOGIN;\n")).collect();
    assert_eq!(first.stdout, expected);
    let warnings: Vec<&str> = first.stderr.lines().filter(|line| line.contains("WARN")).collect();
    assert!(matches!(warnings[..], [one] if one.contains("let an administrator run them")), "{warnings:?}");
    // Its own login can do what each role does.
    let store = Store::connect(&url, 1, "tempmail tests").unwrap();
    for role in GroupRole::ALL {
        store.check_rights(role, &prefix).await.unwrap();
    }

    run(&pool, &first.stdout).await;
    let second = migrate(&url, &prefix).await;
    assert_eq!(second.stdout, "");
    assert!(!second.stderr.contains("WARN"), "{}", second.stderr);
    assert!(tables(&pool, &prefix).await == documented());
}

#[tokio::test(flavor = "multi_thread")]
async fn prints_what_concerns_a_schema_that_it_does_not_own() {
    let database = Database::empty().await;
    let (pool, prefix) = (database.pool(), prefix());
    let (owner, url) = create_login(&database, "owner", "").await;
    run(&pool, &format!("GRANT CREATE, USAGE ON SCHEMA public TO {owner}")).await;
    run(&pool, "GRANT CREATE ON SCHEMA public TO PUBLIC; REVOKE USAGE ON SCHEMA public FROM PUBLIC").await;
    run(&pool, &migrate(&url, &prefix).await.stdout).await;
    let second = migrate(&url, &prefix).await;
    let groups = group_roles(&prefix);
    let expected: String =
        groups.iter().map(|group| format!("GRANT USAGE ON SCHEMA public TO {group};\n")).collect();
    let mut lines: Vec<&str> = second.stdout.lines().collect();
    let mut expected: Vec<&str> = expected.lines().collect();
    lines.sort_unstable();
    expected.sort_unstable();
    assert_eq!(lines, expected);
    run(&pool, &second.stdout).await;
    assert_eq!(migrate(&url, &prefix).await.stdout, "");
    assert!(tables(&pool, &prefix).await == documented());
}

#[tokio::test(flavor = "multi_thread")]
async fn creates_roles_in_several_databases_at_once() {
    let prefix = prefix();
    let databases = [Database::empty().await, Database::empty().await, Database::empty().await];
    let [first, second, third] = databases.each_ref().map(|database| migrate_as_owner(database, &prefix));
    tokio::join!(first, second, third);
    for database in &databases {
        assert!(tables(&database.pool(), &prefix).await == documented());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn prefixes_keep_installations_of_one_server_apart() {
    let (ours, theirs) = (Database::empty().await, Database::empty().await);
    let (our_prefix, their_prefix) = (prefix(), prefix());
    migrate_as_owner(&ours, &our_prefix).await;
    migrate_as_owner(&theirs, &their_prefix).await;
    let before = written(&ours.pool()).await;
    migrate_as_owner(&theirs, &their_prefix).await;
    assert!(written(&ours.pool()).await == before);
    for (database, prefix, foreign) in
        [(&ours, &our_prefix, &their_prefix), (&theirs, &their_prefix, &our_prefix)]
    {
        assert!(tables(&database.pool(), prefix).await == documented());
        assert!(!tables(&database.pool(), foreign).await.contains("SELECT"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_prefix_ends_the_start() {
    for wrong in ["Tempmail", "temp-mail", "pg_mail", &"a".repeat(55)] {
        assert!(RolePrefix::try_from(wrong.to_owned()).is_err());
        for command in ["migrate", "api", "ingest", "worker", "operator"] {
            let ended = CommandOutput::run(&[command], &[("TEMPMAIL_POSTGRES__ROLE_PREFIX", wrong)]).await;
            assert_eq!(
                ended.failure(),
                "`postgres.role_prefix` must be 1 to 54 of a-z, 0-9 and _ that begin with a letter or _, and not pg \
                 or pg_…"
            );
        }
    }
}
