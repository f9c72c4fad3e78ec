//! `tempmail migrate`: how an empty database, one of an earlier version and one that somebody changed by
//! hand become the schema of this version.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use sqlx::{AssertSqlSafe, Executor as _, PgPool};
use tempmail_store::SCHEMA;
use tempmail_tests::CommandOutput;
use tempmail_tests::binary::StartingRole;
use tempmail_tests::postgres::{Database, PostgresProxy};
use tempmail_tests::wait::eventually;

/// A function of ours, and how it is changed by hand.
const FUNCTION: &str = "partition_width(smallint)";
const CHANGE: &str = "CREATE OR REPLACE FUNCTION partition_width(class smallint) RETURNS interval
    LANGUAGE sql IMMUTABLE AS $$ SELECT interval '1 second' $$";

const FORMER: &str = "this database was created by a tempmail before its first release, whose tables are different: \
                      create an empty database and run `tempmail migrate`";

/// What `tempmail` with these arguments does over a database.
async fn tempmail(database: &Database, arguments: &[&str]) -> CommandOutput {
    CommandOutput::run(arguments, &[("TEMPMAIL_POSTGRES__URL", &database.url())]).await
}

/// Runs `tempmail migrate`; returns its warnings.
async fn migrate(database: &Database) -> Vec<String> {
    let ended = tempmail(database, &["migrate"]).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("the schema is up to date"), "{}", ended.stderr);
    ended.stderr.lines().filter(|line| line.contains("WARN")).map(str::to_owned).collect()
}

/// Asserts that there is one warning, about this object.
fn assert_warned(warnings: &[String], object: &str, what: &str) {
    assert_eq!(warnings.len(), 1, "{warnings:#?}");
    assert!(warnings[0].contains(object) && warnings[0].contains(what), "{warnings:#?}");
}

async fn run(pool: &PgPool, statement: &str) {
    pool.execute(AssertSqlSafe(statement.to_owned())).await.unwrap();
}

async fn strings(pool: &PgPool, statement: &'static str) -> Vec<String> {
    sqlx::query_scalar(statement).fetch_all(pool).await.unwrap()
}

/// Definition and last writer of each function, by signature.
async fn functions(pool: &PgPool) -> BTreeMap<String, (String, String)> {
    let rows: Vec<(String, String, String)> = sqlx::query_as(
        "SELECT p.oid::regprocedure::text, pg_get_functiondef(p.oid), p.xmin::text
           FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace",
    )
    .fetch_all(pool)
    .await
    .unwrap();
    rows.into_iter().map(|(name, definition, xmin)| (name, (definition, xmin))).collect()
}

/// The definitions alone.
async fn definitions(pool: &PgPool) -> BTreeMap<String, String> {
    functions(pool).await.into_iter().map(|(name, (definition, _))| (name, definition)).collect()
}

/// What `pg_dump`, which is beside the server's own program, writes of the schema.
async fn dump(database: &Database) -> String {
    let folder: String = sqlx::query_scalar("SELECT setting FROM pg_config WHERE name = 'BINDIR'")
        .fetch_one(&database.pool())
        .await
        .unwrap();
    let output = Command::new(Path::new(&folder).join("pg_dump"))
        .args(["--schema-only", "--dbname", &database.url()])
        .output()
        .expect("pg_dump is installed with Postgres");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    // Newer versions write a random word into these.
    let lines =
        text.lines().filter(|line| !line.starts_with("\\restrict") && !line.starts_with("\\unrestrict"));
    lines.collect::<Vec<_>>().join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn migrates_repeatedly_without_a_change() {
    let database = Database::empty().await;
    let pool = database.pool();
    assert_eq!(migrate(&database).await, [""; 0]);
    let first = functions(&pool).await;
    assert!(first.contains_key(FUNCTION), "{:?}", first.keys());
    assert_eq!(migrate(&database).await, [""; 0]);
    assert!(functions(&pool).await == first, "no function is written again");
    tempmail(&database, &["tenant", "list"]).await.success();
}

#[tokio::test(flavor = "multi_thread")]
async fn migrates_in_several_processes_at_once() {
    let database = Database::empty().await;
    let (first, second, third) = tokio::join!(migrate(&database), migrate(&database), migrate(&database));
    assert_eq!([first, second, third].concat(), [""; 0]);
    tempmail(&database, &["tenant", "list"]).await.success();
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_and_replaces_a_function_that_was_changed_by_hand() {
    let database = Database::create().await;
    let pool = database.pool();
    let before = definitions(&pool).await;
    run(&pool, CHANGE).await;
    run(&pool, &format!("GRANT EXECUTE ON FUNCTION {FUNCTION} TO pg_monitor")).await;
    assert_warned(&migrate(&database).await, &format!("function {FUNCTION}"), "was changed by hand");
    assert!(definitions(&pool).await == before);
    let granted = format!("SELECT has_function_privilege('pg_monitor', '{FUNCTION}', 'EXECUTE')");
    let granted: bool = sqlx::query_scalar(AssertSqlSafe(granted)).fetch_one(&pool).await.unwrap();
    assert!(granted, "what an administrator granted stays");
    assert_eq!(migrate(&database).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_and_recreates_a_function_that_was_dropped_by_hand() {
    let database = Database::create().await;
    let pool = database.pool();
    let before = definitions(&pool).await;
    run(&pool, &format!("DROP FUNCTION {FUNCTION}")).await;
    assert_warned(&migrate(&database).await, &format!("function {FUNCTION}"), "was dropped by hand");
    assert!(definitions(&pool).await == before);
    assert_eq!(migrate(&database).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_and_replaces_views_and_triggers_that_were_changed_by_hand() {
    let database = Database::create().await;
    let pool = database.pool();
    let before = dump(&database).await;
    for (change, object, what) in [
        ("DROP TRIGGER tenant_deleted ON tenant", "trigger tenant_deleted ON tenant", "was dropped by hand"),
        (
            "ALTER TABLE tenant DISABLE TRIGGER tenant_deleted",
            "trigger tenant_deleted ON tenant",
            "was changed by hand",
        ),
        (
            "CREATE OR REPLACE VIEW visible_message AS SELECT * FROM message",
            "view visible_message",
            "was changed by hand",
        ),
    ] {
        run(&pool, change).await;
        assert_warned(&migrate(&database).await, object, what);
        assert!(dump(&database).await == before, "{change}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_a_function_that_is_not_part_of_tempmail() {
    let database = Database::create().await;
    let pool = database.pool();
    run(&pool, "CREATE FUNCTION of_an_administrator() RETURNS integer LANGUAGE sql AS 'SELECT 1'").await;
    let before = functions(&pool).await;
    for _ in 0..2 {
        assert_warned(&migrate(&database).await, "function of_an_administrator()", "is not part of tempmail");
    }
    assert!(functions(&pool).await == before);
}

#[tokio::test(flavor = "multi_thread")]
async fn drops_a_function_that_no_compatible_version_defines() {
    let database = Database::create().await;
    let pool = database.pool();
    let before = dump(&database).await;
    // Of a file that is gone, and of one that has another text now.
    for (name, file) in [("of_a_former_file", "former"), ("of_a_former_text", "id")] {
        let definition =
            format!("CREATE FUNCTION {name}(a integer) RETURNS integer LANGUAGE sql AS 'SELECT 1'");
        run(&pool, &definition).await;
        let record = format!(
            "INSERT INTO schema_object (kind, name, file, file_hash, definition_hash, server, version)
             SELECT 'function', p.oid::regprocedure::text, '{file}', sha256('former'),
                    sha256(convert_to(pg_get_functiondef(p.oid), 'UTF8')),
                    current_setting('server_version_num')::integer / 10000, 0
               FROM pg_proc p WHERE p.proname = '{name}'"
        );
        run(&pool, &record).await;
    }
    assert_eq!(migrate(&database).await, [""; 0]);
    assert!(dump(&database).await == before);
    let recorded = strings(&pool, "SELECT name FROM schema_object WHERE name LIKE 'of_a_former%'").await;
    assert_eq!(recorded, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn leaves_a_newer_schema_as_it_is() {
    for newer in [
        "UPDATE schema_object SET version = 9999 WHERE name LIKE 'new_id(%'",
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (9999, 'newer', true, '', 0)",
    ] {
        let database = Database::create().await;
        let pool = database.pool();
        run(&pool, newer).await;
        run(&pool, CHANGE).await;
        let before = functions(&pool).await;
        let left = tempmail(&database, &["migrate"]).await;
        assert_eq!(left.code, Some(0), "{}", left.stderr);
        let said = format!("newer than this program ({}): it stays as it is", SCHEMA.version());
        assert!(left.stderr.contains(&said), "{}", left.stderr);
        assert!(functions(&pool).await == before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_a_schema_whose_functions_were_not_applied() {
    let database = Database::create().await;
    // As a `migrate` leaves it that is killed after the baseline.
    run(&database.pool(), "DELETE FROM schema_object").await;
    let refused = tempmail(&database, &["tenant", "list"]).await;
    assert!(refused.failure().contains("run `tempmail migrate`"), "{}", refused.stderr);
    assert_eq!(migrate(&database).await, [""; 0]);
    tempmail(&database, &["tenant", "list"]).await.success();
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_a_database_of_before_the_first_release() {
    let database = Database::empty().await;
    let pool = database.pool();
    run(
        &pool,
        "CREATE TABLE _sqlx_migrations (
             version bigint PRIMARY KEY, description text NOT NULL, installed_on timestamptz,
             success boolean NOT NULL, checksum bytea NOT NULL, execution_time bigint NOT NULL);
         INSERT INTO _sqlx_migrations SELECT v, 'former', NULL, true, sha384(v::text::bytea), 0
           FROM generate_series(1, 12) v;
         CREATE TABLE tenant (id uuid PRIMARY KEY)",
    )
    .await;
    let before = dump(&database).await;
    for command in [&["migrate"][..], &["tenant", "list"]] {
        assert_eq!(tempmail(&database, command).await.failure(), FORMER);
    }
    let directory = tempfile::tempdir().unwrap();
    let up = tempmail(&database, &["up", "--data-dir", directory.path().to_str().unwrap()]).await;
    assert!(up.code == Some(1) && up.stderr.contains(FORMER), "{}", up.stderr);
    assert!(dump(&database).await == before, "nothing is touched");
}

#[tokio::test(flavor = "multi_thread")]
async fn revokes_execute_of_all_functions_from_public() {
    let database = Database::create().await;
    let pool = database.pool();
    let open = "SELECT p.oid::regprocedure::text FROM pg_proc p
                 WHERE p.pronamespace = 'public'::regnamespace
                   AND has_function_privilege('public', p.oid, 'EXECUTE')";
    assert_eq!(strings(&pool, open).await, [""; 0]);
    run(&pool, &format!("GRANT EXECUTE ON FUNCTION {FUNCTION} TO PUBLIC")).await;
    assert_eq!(strings(&pool, open).await, [FUNCTION]);
    migrate(&database).await;
    assert_eq!(strings(&pool, open).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn sets_the_search_path_of_definer_functions() {
    let database = Database::create().await;
    let pool = database.pool();
    let definers = "SELECT proname::text FROM pg_proc
                     WHERE pronamespace = 'public'::regnamespace AND prosecdef";
    assert!(!strings(&pool, definers).await.is_empty());
    // `pg_temp` is last: else it is looked in first.
    let open = "SELECT proname::text FROM pg_proc
                 WHERE pronamespace = 'public'::regnamespace AND prosecdef
                   AND NOT coalesce('search_path=public, pg_temp' = ANY (proconfig), false)";
    assert_eq!(strings(&pool, open).await, [""; 0]);
}

/// Every file of ours in SQL.
fn sources() -> Vec<PathBuf> {
    let store = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("libs/store");
    let mut folders = vec![store.join("sql"), store.join("migrations")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files
}

/// The names after `CREATE [OR REPLACE] <kind>`, sorted.
fn created(kind: &str, text: &str) -> Vec<String> {
    let words: Vec<&str> = text
        .lines()
        .map(|line| line.split("--").next().unwrap_or_default())
        .flat_map(|line| line.split(|c: char| c.is_whitespace() || c == '('))
        .filter(|word| !word.is_empty())
        .collect();
    let mut names = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if word.eq_ignore_ascii_case("CREATE") {
            let or_replace = words.get(at + 1).is_some_and(|word| word.eq_ignore_ascii_case("OR"));
            let at = if or_replace { at + 3 } else { at + 1 };
            if words.get(at).is_some_and(|word| word.eq_ignore_ascii_case(kind)) {
                names.push(words[at + 1].to_owned());
            }
        }
    }
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn defines_every_function_once() {
    let texts: Vec<String> = sources().iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let text = texts.join("\n");
    let pool = Database::create().await;
    let pool = pool.pool();
    for (kind, present) in [
        (
            "FUNCTION",
            "SELECT p.proname::text COLLATE \"C\" FROM pg_proc p
              WHERE p.pronamespace = 'public'::regnamespace
                AND NOT EXISTS (SELECT FROM pg_depend d
                                 WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
              ORDER BY 1",
        ),
        (
            "VIEW",
            "SELECT relname::text COLLATE \"C\" FROM pg_class
              WHERE relnamespace = 'public'::regnamespace AND relkind = 'v' ORDER BY 1",
        ),
        (
            "TRIGGER",
            "SELECT t.tgname::text COLLATE \"C\" FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
              WHERE c.relnamespace = 'public'::regnamespace AND NOT t.tgisinternal AND t.tgparentid = 0 ORDER BY 1",
        ),
    ] {
        let created = created(kind, &text);
        assert!(!created.is_empty());
        let twice: Vec<_> = created.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert!(twice.is_empty(), "{kind}: {twice:?}");
        assert_eq!(created, strings(&pool, present).await, "{kind}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn upgrades_to_the_schema_of_a_new_database() {
    let new = Database::empty().await;
    migrate(&new).await;
    // As if the commit before had this function in another form, and one that is gone.
    let old = Database::empty().await;
    migrate(&old).await;
    let pool = old.pool();
    run(&pool, CHANGE).await;
    run(&pool, "CREATE FUNCTION of_before() RETURNS integer LANGUAGE sql AS 'SELECT 1'").await;
    run(
        &pool,
        "UPDATE schema_object SET file_hash = sha256('the text before') WHERE file = 'mail/partition';
         UPDATE schema_object SET definition_hash =
                sha256(convert_to(pg_get_functiondef('partition_width(smallint)'::regprocedure), 'UTF8'))
          WHERE name = 'partition_width(smallint)';
         INSERT INTO schema_object (kind, name, file, file_hash, definition_hash, server, version)
         SELECT 'function', 'of_before()', file, file_hash,
                sha256(convert_to(pg_get_functiondef('of_before()'::regprocedure), 'UTF8')), server, 0
           FROM schema_object WHERE name = 'partition_width(smallint)'",
    )
    .await;
    assert_ne!(definitions(&pool).await, definitions(&new.pool()).await);
    assert_eq!(migrate(&old).await, [""; 0], "an upgrade is no change by hand");
    let (old, new) = (dump(&old).await, dump(&new).await);
    let differing: Vec<_> = old.lines().zip(new.lines()).filter(|(old, new)| old != new).take(10).collect();
    assert!(old == new, "{differing:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_wait_for_the_migration_and_say_so() {
    let database = Database::empty().await;
    let ingest = StartingRole::start("ingest", &database.url());
    ingest.wait_for_readyz("postgres: the schema is at version 0").await;
    migrate(&database).await;
    ingest.wait_until_ready().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_wait_for_postgres_that_is_silent_at_their_start_and_say_so() {
    let database = Database::empty().await;
    migrate(&database).await;
    let pool = database.pool();
    // What a role writes at its start waits for this lock.
    let mut lock = pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE free_class").execute(&mut *lock).await.unwrap();
    let ingest = StartingRole::start("ingest", &database.url());
    ingest.wait_for_readyz("postgres: Postgres does not answer").await;
    lock.rollback().await.unwrap();
    ingest.wait_until_ready().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_for_postgres() {
    let database = Database::empty().await;
    let postgres = PostgresProxy::start().await;
    postgres.cut();
    let mut migrating = StartingRole::start("migrate", &database.url_through(postgres.port()));
    eventually("it waits", || async {
        migrating.process.stderr().contains("waiting for Postgres").then_some(())
    })
    .await;
    postgres.restore();
    assert!(migrating.process.wait().success(), "{}", migrating.process.stderr());
    assert_eq!(migrate(&database).await, [""; 0]);
}
