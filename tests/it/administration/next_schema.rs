//! Programs of this version over the schema of the next one: a platform team migrates while the pods of the version
//! before still serve, and these may restart.

use tempmail_model::role_prefix::RolePrefix;
use tempmail_model::token::TokenKind;
use tempmail_next::next_schema;
use tempmail_store::{SCHEMA, SchemaDefinition, Store};
use tempmail_tests::command::CommandOutput;
use tempmail_tests::load::senders::{LoadProfile, Senders};
use tempmail_tests::postgres::Database;
use tempmail_tests::{Feed, Fleet, Follower};

use crate::realtime::fixture::RealtimeFixture;

/// Mails accepted before and after each step.
const MAILS: usize = 100;
/// Long-polls that wait for the same address.
const WAITERS: usize = 100;
const SHARED: &str = "shared@inbox.localhost";

/// The schema after it, with which programs of this version no longer work.
fn schema_after_next() -> SchemaDefinition {
    let next = next_schema();
    SchemaDefinition { lowest_compatible: next.version(), ..next }
}

fn store(database: &Database) -> Store {
    Store::connect(&database.url(), 1, "tempmail tests").expect("our own URL is one")
}

async fn signatures_of(function: &str, database: &Database) -> usize {
    let rows: Vec<String> = sqlx::query_scalar("SELECT proname::text FROM pg_proc WHERE proname = $1")
        .bind(function)
        .fetch_all(&database.pool())
        .await
        .expect("Postgres answers");
    rows.len()
}

async fn list_tenants(database: &Database) -> CommandOutput {
    CommandOutput::run(&["tenant", "list"], &[("TEMPMAIL_POSTGRES__URL", &database.url())]).await
}

/// Followers of the address that a tenant may wait for ten times.
async fn waiters(fleet: &Fleet) -> Vec<Follower> {
    let mut waiters = Vec::new();
    for nth in 0..WAITERS / 10 {
        let tenant = fleet.another_tenant(&format!("quay-{nth}")).await;
        for _ in 0..10 {
            let token = fleet.token(&tenant, TokenKind::Live).await;
            waiters.push(fleet.follow(nth % 2, &token, Feed::Inbox(SHARED.to_owned())));
        }
    }
    for waiter in &waiters {
        waiter.ready().await;
    }
    waiters
}

/// Some 200 mails a second. One in 31 is for the waiters, each of which makes a request for it.
fn load(fixture: &RealtimeFixture) -> LoadProfile {
    let load = fixture.load();
    let others = load.recipients.iter().filter(|recipient| *recipient != SHARED);
    let mut recipients: Vec<String> = others.cycle().take(30).cloned().collect();
    recipients.push(SHARED.to_owned());
    LoadProfile { recipients, connections: 8, ..load }
}

#[tokio::test(flavor = "multi_thread")]
async fn serves_while_the_next_schema_is_applied_and_restarts_over_it() {
    let fixture = RealtimeFixture::start().await;
    let fleet = &fixture.fleet;
    let waiters = waiters(fleet).await;
    let senders = Senders::start(&load(&fixture));
    senders.wait_for_accepted(MAILS).await;

    let report = next_schema().migrate(&store(fleet.database()), &RolePrefix::default()).await.unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    senders.wait_for_accepted(MAILS).await;
    for process in fleet.processes() {
        let log = process.log();
        let failed = |line: &&str| line.contains("Postgres refused") || line.contains("\"level\":\"ERROR\"");
        let failed: Vec<&str> = log.lines().filter(failed).collect();
        assert!(failed.is_empty(), "{:?}: {failed:#?}", process.role());
    }
    // A permit may be there twice for a moment where a process lost its connection to Redis, and a request may wait too
    // long for a connection to Postgres: on a busy machine both happen without a migration, too.
    let deferrals = waiters.iter().flat_map(Follower::deferrals);
    let deferrals: Vec<String> =
        deferrals.filter(|code| !["token_busy", "unavailable"].contains(&code.as_str())).collect();
    assert!(deferrals.is_empty(), "no request of a waiter failed: {deferrals:?}");

    fleet.api(1).restart().await;
    fleet.ingest(1).restart().await;
    fleet.worker(0).restart().await;
    senders.wait_for_accepted(MAILS).await;
    let accepted = senders.stop().await;
    let before_the_restart = &accepted[..2 * MAILS];
    assert!(before_the_restart.iter().all(|sent| sent.acceptance.attempts == 1), "no mail was deferred");
    fixture.assert_delivered(&accepted).await;
    let stored = fleet.stored_message_ids(SHARED).await;
    for waiter in &waiters {
        waiter.wait_for(stored.len()).await;
        assert_eq!(waiter.received(), stored);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_what_programs_of_a_compatible_version_call() {
    let database = Database::create().await;
    let (next, after) = (next_schema(), schema_after_next());
    let store = store(&database);
    for _ in 0..2 {
        assert_eq!(next.migrate(&store, &RolePrefix::default()).await.unwrap().findings, []);
        assert_eq!(signatures_of("inbox_messages", &database).await, 2, "of this version and of the next");
    }
    SCHEMA.check(&store).await.unwrap();
    next.check(&store).await.unwrap();
    list_tenants(&database).await.success();

    assert_eq!(after.migrate(&store, &RolePrefix::default()).await.unwrap().findings, []);
    assert_eq!(signatures_of("inbox_messages", &database).await, 1);
    next.check(&store).await.unwrap();
    let refused = list_tenants(&database).await;
    assert!(refused.failure().contains("use a newer tempmail"), "{}", refused.stderr);
}
