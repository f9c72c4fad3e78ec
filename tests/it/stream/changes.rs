//! The feed of changes: whoever looks at it meets each change once, in whatever order transactions
//! commit.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use sqlx::{PgPool, Postgres, Transaction};
use tempmail_store::{ChangeSnapshot, Store};
use tempmail_tests::App;
use uuid::Uuid;

const NOTHING: [Uuid; 0] = [];

fn store(app: &App) -> Store {
    Store::connect(&app.database().url(), 2, "tempmail tests").unwrap()
}

/// Looks again; what changed since the look before.
async fn look(store: &Store, last: &mut ChangeSnapshot) -> Vec<Uuid> {
    let head = store.poll_stream(Some(last)).await.unwrap();
    *last = head.snapshot;
    head.changed
}

async fn suspend<'a>(pool: &PgPool, tenant: Uuid) -> Transaction<'a, Postgres> {
    let mut transaction = pool.begin().await.unwrap();
    let suspended = sqlx::query("UPDATE tenant SET suspended = NOT suspended WHERE id = $1").bind(tenant);
    assert_eq!(suspended.execute(&mut *transaction).await.unwrap().rows_affected(), 1);
    transaction
}

#[tokio::test(flavor = "multi_thread")]
async fn polls_each_change_once_in_any_order_of_commits() {
    let app = App::start().await;
    let store = store(&app);
    let mut tenants = Vec::new();
    for name in ["first", "second", "third", "fourth"] {
        tenants.push(app.another_tenant(name).await.id);
    }
    let mut last = store.poll_stream(None).await.unwrap().snapshot;
    assert_eq!(look(&store, &mut last).await, NOTHING);

    // The later of the two commits first.
    let early = suspend(&app.pool, tenants[0]).await;
    let late = suspend(&app.pool, tenants[1]).await;
    assert_eq!(look(&store, &mut last).await, NOTHING, "nothing is committed");
    late.commit().await.unwrap();
    assert_eq!(look(&store, &mut last).await, [tenants[1]]);
    assert_eq!(look(&store, &mut last).await, NOTHING, "once");
    // One that begins and ends while the early one is open, and one that comes to nothing.
    suspend(&app.pool, tenants[2]).await.commit().await.unwrap();
    suspend(&app.pool, tenants[3]).await.rollback().await.unwrap();
    assert_eq!(look(&store, &mut last).await, [tenants[2]]);
    early.commit().await.unwrap();
    assert_eq!(look(&store, &mut last).await, [tenants[0]]);
    assert_eq!(look(&store, &mut last).await, NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn polls_every_change_of_many_transactions_exactly_once() {
    let app = App::start().await;
    let store = store(&app);
    let mut tenants = Vec::new();
    for number in 0..8 {
        tenants.push(app.another_tenant(&format!("tenant{number}")).await.id);
    }
    let mut last = store.poll_stream(None).await.unwrap().snapshot;
    let changes = join_all(tenants.iter().enumerate().map(|(number, tenant)| {
        let pool = &app.pool;
        async move {
            for round in 0..20 {
                let transaction = suspend(pool, *tenant).await;
                // So that transactions overlap, each in its own way.
                let open = Duration::from_millis((number * 7 + round * 3) as u64 % 11);
                tokio::time::sleep(open).await;
                transaction.commit().await.unwrap();
            }
        }
    }));
    let mut met: BTreeMap<Uuid, usize> = BTreeMap::new();
    let mut changes = std::pin::pin!(changes);
    let mut over = false;
    while !over {
        over = futures_util::poll!(&mut changes).is_ready();
        for subject in look(&store, &mut last).await {
            *met.entry(subject).or_default() += 1;
        }
    }
    for subject in look(&store, &mut last).await {
        *met.entry(subject).or_default() += 1;
    }
    for tenant in &tenants {
        // A look tells a subject once, though it changed twice since the look before.
        assert!((1..=20).contains(&met[tenant]), "{met:?}");
    }
    assert_eq!(look(&store, &mut last).await, NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn records_every_change_of_rights() {
    let app = App::start().await;
    let store = store(&app);
    let other = app.another_tenant("lighthouse").await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), "box@inbox.localhost").await;
    let domain = app.custom_domain(&app.tenant, "ours.example").await;
    let system = app.system_domain("further.localhost", true).await;
    let token: Uuid = sqlx::query_scalar("SELECT id FROM api_token WHERE tenant = $1 AND kind = 'live'")
        .bind(app.tenant.id)
        .fetch_one(&app.pool)
        .await
        .unwrap();
    let key = tempmail_model::address::RecipientAddress::parse("new@inbox.localhost").unwrap().inbox_key();
    let mut last = store.poll_stream(None).await.unwrap().snapshot;
    app.mailbox(None, "new@inbox.localhost").await;
    assert_eq!(look(&store, &mut last).await, [key], "an address that became a mailbox");
    for (statement, subject) in [
        ("UPDATE api_token SET expires_at = now() WHERE id = $1", token),
        ("UPDATE api_token SET revoked_at = now() WHERE id = $1", token),
        ("UPDATE mailbox SET password_epoch = password_epoch + 1 WHERE id = $1", mailbox.id),
        ("UPDATE mailbox SET removed_at = now(), held_until = now() WHERE id = $1", mailbox.id),
        ("UPDATE domain SET shared_inboxes = false WHERE id = $1", system),
        (
            "UPDATE domain SET serves = false, verify_status = 'failed', failure_reason = 'records_lost'
             WHERE id = $1",
            domain,
        ),
        ("UPDATE tenant SET suspended = true WHERE id = $1", other.id),
        ("DELETE FROM api_token WHERE id = $1", token),
    ] {
        let changed = sqlx::query(statement).bind(subject).execute(&app.pool).await.unwrap();
        assert_eq!(changed.rows_affected(), 1, "{statement}");
        assert_eq!(look(&store, &mut last).await, [subject], "{statement}");
    }
    let used = sqlx::query("UPDATE mailbox SET seen_at = now() WHERE id = $1").bind(mailbox.id);
    used.execute(&app.pool).await.unwrap();
    assert_eq!(look(&store, &mut last).await, NOTHING, "what changes no right is not in the feed");
}
