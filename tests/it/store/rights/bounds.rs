//! What a login may do: nothing without grants, and that of a role within bounds; and what a role says of a login
//! that can't do what the role needs.

use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::ToSqlx as _;
use sqlx::{PgPool, Row as _};
use tempmail_model::retention::RetentionClass;
use tempmail_model::role_prefix::RolePrefix;
use tempmail_store::{PartitionRange, SCHEMA, Store};
use tempmail_tests::App;
use tempmail_tests::binary::StartingRole;
use tempmail_tests::fleet::Role;
use tempmail_tests::postgres::Database;

use super::{DENIED, create_login, refusal, run};

/// SQLSTATE of an argument out of bounds.
const OUT_OF_BOUNDS: &str = "TM003";

/// A database whose bounds are those of an installation: other tests move the clock, and it replaces them.
async fn database() -> (Database, Store, Timestamp) {
    let database = Database::empty().await;
    let store = Store::connect(&database.url(), 1, "tempmail tests").unwrap();
    SCHEMA.migrate(&store, &RolePrefix::default()).await.unwrap();
    let row = sqlx::query("SELECT clock_timestamp()").fetch_one(store.pool()).await.unwrap();
    let now: jiff_sqlx::Timestamp = row.get(0);
    (database, store, now.to_jiff())
}

fn hours(hours: i64) -> SignedDuration {
    SignedDuration::from_hours(hours)
}

/// Names of the tables of partitions.
async fn partitions(pool: &PgPool) -> Vec<String> {
    let statement = "SELECT relname::text FROM pg_class
                      WHERE relname ~ '^(message|raw|webhook_delivery)_[0-9]' AND relkind = 'r' ORDER BY 1";
    sqlx::query_scalar(statement).fetch_all(pool).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn creates_partitions_of_mail_that_is_accepted_now_only() {
    let (_database, store, now) = database().await;
    for (class, at) in [
        (1, now + hours(2)),
        (1, now - hours(2)),
        (24, now + hours(3)),
        (24, now - hours(26)),
        (720, now + hours(42)),
        (720, now - hours(741)),
    ] {
        let class = RetentionClass::try_from(class).unwrap();
        let refused = store.ensure_message_partition(class, at).await.unwrap_err().to_string();
        assert!(refused.contains("is accepted at"), "{class:?} {at}: {refused}");
    }
    for absurd in [
        "ensure_message_partition(7::smallint, now())",
        "ensure_message_partition(0::smallint, now())",
        "ensure_message_partition(-1::smallint, now())",
        "ensure_message_partition(NULL, now())",
        "ensure_message_partition(1::smallint, NULL)",
        "ensure_message_partition(1::smallint, 'infinity')",
        "ensure_message_partition(1::smallint, '-infinity')",
        "ensure_delivery_partition(now() + interval '3 days')",
        "ensure_delivery_partition(now() - interval '8 days')",
        "ensure_delivery_partition('infinity')",
        "ensure_delivery_partition(NULL)",
    ] {
        assert!(refusal(store.pool(), &format!("SELECT {absurd}")).await.is_some(), "{absurd}");
    }
    assert_eq!(partitions(store.pool()).await, [""; 0]);
    for class in RetentionClass::ALL {
        let ahead = class.partition_width() * 2;
        for at in [now, now + ahead, now - class.duration()] {
            assert!(store.ensure_message_partition(class, at).await.unwrap(), "{class:?} {at}");
        }
    }
    store.ensure_delivery_partition(now + hours(24)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn detaches_and_drops_expired_partitions_only() {
    let (database, store, now) = database().await;
    let class = RetentionClass::FREE;
    store.ensure_message_partition(class, now).await.unwrap();
    let (starts, name): (jiff_sqlx::Timestamp, String) = sqlx::query_as(
        "SELECT starts, 'message_1_' || extract(epoch FROM starts)::bigint FROM message_partition",
    )
    .fetch_one(store.pool())
    .await
    .unwrap();
    let range = PartitionRange { class, starts: starts.to_jiff() };
    let refused = store.detach_message_partition(range).await.unwrap_err().to_string();
    assert!(refused.contains("is kept that was accepted before"), "{refused}");
    assert_eq!(store.count_partitions().await.unwrap(), 1);

    // As an administrator detaches one: its mail is kept until it expires.
    run(store.pool(), &format!("ALTER TABLE message DETACH PARTITION {name}")).await;
    // Tables of expired mail: ours, and one that is not.
    run(store.pool(), "CREATE TABLE message_1_1000000200 (); CREATE TABLE raw_24_1000000800 ()").await;
    let (stranger, _) = create_login(&database, "stranger", "").await;
    run(
        store.pool(),
        &format!("CREATE TABLE raw_1_1000000500 (); ALTER TABLE raw_1_1000000500 OWNER TO {stranger}"),
    )
    .await;
    run(store.pool(), "CREATE TABLE message_1_2_3 (); CREATE TABLE message_9999_1 ()").await;
    assert_eq!(store.drop_detached_partitions().await.unwrap(), 2);
    let left = partitions(store.pool()).await;
    assert_eq!(left.len(), 5, "{left:?}");
    assert!(left.contains(&name) && left.contains(&"raw_1_1000000500".to_owned()), "{left:?}");

    // Expired, as the table of partitions and the names say.
    run(
        store.pool(),
        "INSERT INTO message_partition (class, starts, ends) VALUES (1, to_timestamp(1000000200), to_timestamp(1000000500));
         CREATE TABLE message_1_1000000200 (LIKE message INCLUDING ALL);
         CREATE TABLE raw_1_1000000200 (LIKE raw INCLUDING ALL);
         ALTER TABLE message ATTACH PARTITION message_1_1000000200
               FOR VALUES FROM (1, time_id(to_timestamp(1000000200))) TO (1, time_id(to_timestamp(1000000500)));
         ALTER TABLE raw ATTACH PARTITION raw_1_1000000200
               FOR VALUES FROM (1, time_id(to_timestamp(1000000200))) TO (1, time_id(to_timestamp(1000000500)))",
    )
    .await;
    let expired = PartitionRange { class, starts: Timestamp::from_second(1_000_000_200).unwrap() };
    assert!(store.detach_message_partition(expired).await.unwrap());
    assert_eq!(store.drop_detached_partitions().await.unwrap(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn drops_attempts_after_a_week_only() {
    let (_database, store, now) = database().await;
    store.ensure_delivery_partition(now).await.unwrap();
    run(store.pool(), "CREATE TABLE webhook_delivery_1000000000 ()").await;
    for before in [now, now - hours(24 * 7 - 1)] {
        let dropped = sqlx::query("SELECT drop_delivery_partitions($1)").bind(before.to_sqlx());
        let refused = dropped.execute(store.pool()).await.unwrap_err();
        assert_eq!(refused.as_database_error().unwrap().code().as_deref(), Some(OUT_OF_BOUNDS));
    }
    assert_eq!(partitions(store.pool()).await.len(), 2);
    // What the worker asks for.
    store.drop_delivery_partitions(now).await.unwrap();
    assert_eq!(partitions(store.pool()).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_waits_until_its_login_has_the_rights() {
    let database = Database::create().await;
    let (login, url) = create_login(&database, "ingest", "").await;
    let ingest = StartingRole::start("ingest", &url);
    ingest.wait_for_readyz("postgres: the database login lacks a right (").await;
    run(&database.pool(), &format!("GRANT tempmail_ingest TO {login}")).await;
    ingest.wait_until_ready().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_names_the_group_that_its_login_should_be_in() {
    let database = Database::create().await;
    let ingest = StartingRole::start("ingest", &database.role_url(Role::Worker));
    let login = "tempmail_worker_login";
    ingest.wait_for_readyz(&format!("postgres: the database login {login} lacks ")).await;
    let advice = format!(
        "which `ingest` needs: make it a member of tempmail_ingest (GRANT tempmail_ingest TO {login}), and run \
         `tempmail migrate`"
    );
    ingest.wait_for_readyz(&advice).await;
}

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
