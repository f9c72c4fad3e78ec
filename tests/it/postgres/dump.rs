//! A dump that is restored into another server: rows of the feed of changes have the numbers of transactions that the
//! former server gave.

use tempmail_store::{ChangeSnapshot, Store};
use tempmail_tests::CommandOutput;
use tempmail_tests::fleet::Role;
use tempmail_tests::postgres::{Database, DedicatedPostgres};
use uuid::Uuid;

/// Changes that are in the feed when the database is dumped.
const CHANGES: i64 = 3;
const NOTHING: [Uuid; 0] = [];

fn store(database: &Database) -> Store {
    // The role that needs the feed, and may do least with it.
    Store::connect(&database.role_url(Role::Operator), 1, "tempmail tests").unwrap()
}

/// Changes a tenant, and returns it.
async fn change(database: &Database) -> Uuid {
    let statement = "UPDATE tenant SET suspended = NOT suspended RETURNING id";
    sqlx::query_scalar(statement).fetch_one(&database.pool()).await.unwrap()
}

async fn count(database: &Database, statement: &'static str) -> i64 {
    sqlx::query_scalar(statement).fetch_one(&database.pool()).await.unwrap()
}

async fn count_changes(database: &Database) -> i64 {
    count(database, "SELECT count(*) FROM change").await
}

async fn next_transaction(database: &Database) -> i64 {
    count(database, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").await
}

/// A poll of the feed after the snapshot `last`, which it replaces.
async fn poll(store: &Store, last: &mut ChangeSnapshot) -> Vec<Uuid> {
    let head = store.poll_stream(Some(last)).await.unwrap();
    *last = head.snapshot;
    head.changed
}

/// A reader that begins now meets each later change once, and nothing of before.
async fn assert_at_rest(database: &Database) {
    let store = store(database);
    let mut last = store.poll_stream(None).await.unwrap().snapshot;
    for _ in 0..3 {
        assert_eq!(poll(&store, &mut last).await, NOTHING);
    }
    let changed = change(database).await;
    assert_eq!(poll(&store, &mut last).await, [changed]);
    for _ in 0..3 {
        assert_eq!(poll(&store, &mut last).await, NOTHING);
    }
}

async fn declare_restored(database: &Database) {
    let url = database.url();
    CommandOutput::run(&["database", "restored"], &[("TEMPMAIL_POSTGRES__URL", &url)]).await.success();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_dump_leaves_the_feed_of_changes_at_rest() {
    let (busy, new) = (DedicatedPostgres::start().await, DedicatedPostgres::start().await);
    // Roles are of a server, and in no dump.
    let (original, _) = (busy.database().await, new.database().await);
    original.use_transaction_ids().await;
    for _ in 0..CHANGES {
        change(&original).await;
    }
    let mut reader = store(&original).poll_stream(None).await.unwrap().snapshot;
    let dump = original.dump().await;

    // Into a server whose numbers are lower: the first reader finds another server, with the command or without.
    for is_declared in [false, true] {
        let restored = new.restore(&dump).await;
        assert_eq!(count_changes(&restored).await, CHANGES);
        assert!(next_transaction(&restored).await * 2 < next_transaction(&original).await);
        if is_declared {
            declare_restored(&restored).await;
        }
        assert_at_rest(&restored).await;
        assert_eq!(count(&restored, "SELECT count(*) FROM stream_generation").await, 2);
    }

    // A process that ran before the restore: its snapshot is of the former server.
    let restored = new.restore(&dump).await;
    let head = store(&restored).poll_stream(Some(&reader)).await.unwrap();
    assert!(
        !reader.shares_generation_with(&head.snapshot),
        "the reader knows that it may have missed changes"
    );
    reader = head.snapshot;
    assert_eq!(poll(&store(&restored), &mut reader).await, NOTHING);

    // Into a server whose numbers are higher.
    change(&restored).await;
    let dump = restored.dump().await;
    for is_declared in [false, true] {
        let restored = busy.restore(&dump).await;
        assert!(count_changes(&restored).await > 0);
        if is_declared {
            declare_restored(&restored).await;
        }
        assert_at_rest(&restored).await;
    }
}
