//! The one stream: whoever follows it meets each mail exactly once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Executor as _, PgPool, Postgres, Transaction};
use tempmail_model::token::TokenKind;
use tempmail_store::{ChangeSnapshot, Store};
use tempmail_tests::http::percent;
use tempmail_tests::postgres::Database;
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, EventStream, SmtpClient, WebSocket, smtp};
use uuid::Uuid;

/// One address that half of the mail goes to, and those that share the rest.
pub fn addresses(others: usize) -> Vec<String> {
    (0..=others).map(|i| format!("follow{i}@inbox.localhost")).collect()
}

/// Which address the mail of a number goes to.
fn address_of(addresses: &[String], number: usize) -> &str {
    let others = addresses.len() - 1;
    if number.is_multiple_of(2) { &addresses[0] } else { &addresses[1 + number / 2 % others] }
}

/// What each address was sent, and what its follower met, in the order it did.
pub struct Met {
    /// Numbers sent to the address.
    pub sent: usize,
    /// Subjects met, oldest first.
    pub subjects: Vec<String>,
}

/// Sends `mails` over 32 connections to all ingest servers while a follower an address goes
/// after them; ends when every follower has met the mail that was sent after all others.
pub async fn follow(app: &App, addresses: &[String], mails: usize) -> BTreeMap<String, Met> {
    // A first mail gives every follower its place in the stream.
    let mut followers = Vec::new();
    for address in addresses {
        app.deliver(address, "first", "").await;
        let token = app.token(&app.tenant, TokenKind::Live).await;
        let first = app.get_as(&token, &format!("/v1/inbox/{}", percent(address))).await.expect(200);
        followers.push((address, token, first["next_since"].as_str().unwrap().to_owned()));
    }
    let load = async {
        join_all((0..32).map(|connection| send_load(app, addresses, mails, connection))).await;
        for address in addresses {
            app.deliver(address, "last", "").await;
        }
    };
    let follow = join_all(followers.into_iter().map(|(address, token, since)| async move {
        (address.clone(), follow_one(app, address, &token, since).await)
    }));
    let ((), met) = tokio::join!(load, follow);
    met.into_iter()
        .map(|(address, subjects)| {
            let sent = (0..mails).filter(|&number| address_of(addresses, number) == address).count();
            (address, Met { sent, subjects })
        })
        .collect()
}

async fn send_load(app: &App, addresses: &[String], mails: usize, connection: usize) {
    let servers = app.smtp_all();
    let mut client = SmtpClient::connect_with_ehlo(servers[connection % servers.len()]).await;
    for number in (connection..mails).step_by(32) {
        let message = smtp::message("a@client.example", &format!("{number}"), "");
        let recipient = address_of(addresses, number);
        let reply = client.transact("a@client.example", &[recipient], &message).await;
        assert_eq!(reply.code, 250, "{reply:?}");
    }
}

async fn follow_one(app: &App, address: &str, token: &str, mut since: String) -> Vec<String> {
    let mut met = Vec::new();
    loop {
        let path = format!("/v1/inbox/{}?limit=50&since={since}", percent(address));
        let answer = app.request(Method::GET, &path).live(token).send_until_available().await;
        if answer.status == 204 {
            answer.header("x-next-since").clone_into(&mut since);
            continue;
        }
        let body = answer.expect(200);
        since = body["next_since"].as_str().unwrap().to_owned();
        for email in body["emails"].as_array().unwrap().iter().rev() {
            match email["subject"].as_str().unwrap() {
                "last" => return met,
                subject => met.push(subject.to_owned()),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_each_of_ten_thousand_mails_exactly_once() {
    let app = App::builder().ingests(2).start().await;
    let met = follow(&app, &addresses(15), 10_000).await;
    let mut all = BTreeSet::new();
    for (address, met) in &met {
        assert_eq!(met.subjects.len(), met.sent, "{address}");
        for subject in &met.subjects {
            assert!(all.insert(subject.parse::<usize>().unwrap()), "{subject} was met twice");
        }
    }
    assert_eq!(all, (0..10_000).collect());
}

/// The negative control: the same follower over numbers from a plain sequence, which are given
/// out in one order and committed in another.
#[tokio::test(flavor = "multi_thread")]
async fn loses_mail_with_a_plain_sequence() {
    let database = Database::create().await;
    number_by_plain_sequence(&database.pool()).await;
    let app = App::builder().database(database).ingests(2).start().await;
    let met = follow(&app, &addresses(3), 2_000).await;
    let (sent, missed): (usize, usize) = met
        .values()
        .map(|met| {
            let distinct: BTreeSet<&String> = met.subjects.iter().collect();
            (met.sent, met.sent - distinct.len())
        })
        .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert_eq!(sent, 2_000);
    assert!(missed > 0, "the follower would not notice a wrong order of seq");
}

/// Replaces the numbering of `accept_mail`: no lock of the stream, the number taken from a
/// sequence when the batch begins, and every second batch slow to commit.
async fn number_by_plain_sequence(pool: &PgPool) {
    let statement = "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE proname = 'accept_mail'";
    let function: String = sqlx::query_scalar(statement).fetch_one(pool).await.unwrap();
    let locked = "UPDATE stream SET seq = seq + v_count RETURNING seq - v_count INTO STRICT v_before;";
    assert_eq!(function.matches(locked).count(), 1, "accept_mail takes the lock of the stream once");
    let function = function.replace(
        locked,
        "v_before := nextval('plain_seq');
         PERFORM pg_sleep(CASE WHEN (v_before / 100000) % 2 = 0 THEN 0.05 ELSE 0 END);",
    );
    // The counter only follows, and locks nobody out before the end.
    let end =
        function.rfind("END\n$function$").or_else(|| function.rfind("END $function$")).expect("it ends");
    let followed = "UPDATE stream SET seq = greatest(seq, v_before + v_count);\n";
    let function = format!("{}{followed}{}", &function[..end], &function[end..]);
    pool.execute(
        "CREATE SEQUENCE plain_seq INCREMENT 100000 START 100000;
         GRANT USAGE ON SEQUENCE plain_seq TO tempmail_ingest",
    )
    .await
    .unwrap();
    pool.execute(AssertSqlSafe(function)).await.unwrap();
}

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

const ADDRESS: &str = "twice@inbox.localhost";

/// Mails that the database loses, and those afterwards: more, so that positions above the cursor are given, too.
const LOST: usize = 2;

const AFTER: usize = 5;

async fn deliver_numbered(app: &App, kind: &str, count: usize) -> Vec<String> {
    let subjects: Vec<String> = (0..count).map(|number| format!("{kind} {number}")).collect();
    for subject in &subjects {
        assert_eq!(app.deliver(ADDRESS, subject, "").await.code, 250);
    }
    subjects
}

/// Takes away the newest mails and begins a generation, as a restored copy does that lacks them.
async fn lose_newest_mails(app: &App) {
    let statement = format!(
        "UPDATE stream SET seq = seq - {LOST}, generation = gen_random_uuid();
         DELETE FROM message WHERE seq > (SELECT seq FROM stream);
         INSERT INTO stream_generation (id, base) SELECT generation, seq FROM stream"
    );
    app.pool.execute(AssertSqlSafe(statement)).await.unwrap();
}

fn subjects(listed: &Value) -> Vec<String> {
    let emails = listed["emails"].as_array().unwrap().iter().rev();
    emails.map(|email| email["subject"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn serves_no_mail_of_an_unknown_generation() {
    let app = App::start().await;
    let live = &app.tenant.live;
    let mailbox = app.mailbox(Some(&app.tenant.pro), ADDRESS).await;
    deliver_numbered(&app, "before", 1).await;
    deliver_numbered(&app, "lost", LOST).await;
    let cursor = app.cursor_as(live).await;
    let request = app.request(Method::GET, &format!("/v1/sse/addr?address={ADDRESS}&since={cursor}"));
    let mut stream = EventStream::open(request.live(live)).await;
    let mut socket = WebSocket::authenticated(app.http(), &mailbox.jwt).await;

    // Polls of the stream, which find another generation, wait for this lock.
    let mut lock = app.pool.begin().await.unwrap();
    lock.execute("LOCK TABLE change IN ACCESS EXCLUSIVE MODE").await.unwrap();
    lose_newest_mails(&app).await;
    let expected = deliver_numbered(&app, "after", AFTER).await;
    let long_poll = format!("/v1/inbox/{ADDRESS}?since={cursor}");
    let wait = json!({ "address": ADDRESS, "since": cursor });
    app.get(&long_poll).await.assert_v1_error(503, "unavailable");
    app.get(&format!("/v1/inbox/{ADDRESS}")).await.assert_v1_error(503, "unavailable");
    app.wait_for_email(live, &wait).await.assert_v1_error(503, "unavailable");
    let refused = app.request(Method::GET, &format!("/v1/sse/addr?address={ADDRESS}")).live(live);
    EventStream::refused(refused).await.assert_v1_error(503, "unavailable");
    lock.rollback().await.unwrap();

    let listed = eventually("a long-poll is answered", || async {
        let answer = app.get(&long_poll).await;
        (answer.status == 200).then(|| answer.json())
    })
    .await;
    assert_eq!(subjects(&listed), expected);
    let found = app.wait_for_email(live, &wait).await.expect(200);
    assert_eq!(found["email"]["subject"], expected[0].as_str());
    for subject in &expected {
        let event = stream.next().await;
        let data: Value = serde_json::from_str(&event.data).unwrap();
        assert_eq!((event.name.as_str(), data["subject"].as_str()), ("new_email", Some(subject.as_str())));
        let pushed = socket.next_json().await;
        assert_eq!((&pushed["type"], &pushed["subject"]), (&json!("new_email"), &json!(subject)));
    }
}
