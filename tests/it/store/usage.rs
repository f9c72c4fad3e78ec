//! `used` is the sum of the sizes of the messages that a mailbox shows, and a quota is checked by it: after any
//! order of arrivals, deletions one by one, by tag and of all, expiry and the worker's passes.

use futures_util::future::join_all;
use jiff::SignedDuration;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use reqwest::Method;
use serde_json::Value;
use tempmail_model::clock::Clock as _;
use tempmail_tests::http::Response;
use tempmail_tests::mailbox::Mailbox;
use tempmail_tests::rows::{set_mailbox_quota, set_retention};
use tempmail_tests::wait::eventually;
use tempmail_tests::{App, Reply, send_mail, smtp};
use tokio::join;

use super::store;

const ADDRESS: &str = "name@inbox.localhost";

async fn used(app: &App, mailbox: &Mailbox) -> u64 {
    app.get_mailbox(mailbox, "/api/me").await.expect(200)["used"].as_u64().unwrap()
}

/// All messages of a mailbox, all pages.
async fn messages(app: &App, mailbox: &Mailbox) -> Vec<Value> {
    let mut all = Vec::new();
    for page in 1.. {
        let answer = app.get_mailbox(mailbox, &format!("/api/messages?page={page}")).await.expect(200);
        let some = answer["messages"].as_array().unwrap();
        all.extend(some.iter().cloned());
        if some.len() < 30 {
            break;
        }
    }
    all
}

fn sum(messages: &[Value]) -> u64 {
    messages.iter().map(|message| message["size"].as_u64().unwrap()).sum()
}

async fn send(app: &App, tag: &str, octets: usize) -> Reply {
    let message = smtp::message("a@client.example", "filling", &"x".repeat(octets));
    send_mail(app.smtp(), "a@client.example", &format!("name{tag}@inbox.localhost"), &message).await
}

async fn clear(app: &App, tag: &str) {
    let path = format!("/v1/inbox/name{tag}@inbox.localhost");
    let answer = carried_out(|| app.delete(&path)).await;
    assert_eq!(answer.status, 204, "{}", answer.text());
}

/// The answer to a deletion. It may be 503 while mail flows: each delivery changes the rows that a deletion waits for, and on
/// a busy machine the next one may do so before the deletion continues, again and again for as long as a statement may take.
async fn carried_out<F>(mut request: impl FnMut() -> F) -> Response
where
    F: Future<Output = Response>,
{
    eventually("the deletion is carried out", || {
        let answer = request();
        async {
            let answer = answer.await;
            (answer.status != 503).then_some(answer)
        }
    })
    .await
}

/// The seed of a failure is in its message.
#[tokio::test(flavor = "multi_thread")]
async fn counts_usage_exactly_after_any_order_of_arrivals_deletions_and_expiry() {
    let seed = rand::rng().random::<u32>();
    let mut random = StdRng::seed_from_u64(seed.into());
    let app = App::start().await;
    set_retention(&app.pool, app.tenant.id, 1).await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), ADDRESS).await;
    for step in 0..120 {
        let tag = ["", "+a", "+b"][random.random_range(0..3)];
        match random.random_range(0..12) {
            0 => clear(&app, tag).await,
            1 | 2 => {
                let shown = messages(&app, &mailbox).await;
                if !shown.is_empty() {
                    let id = shown[random.random_range(0..shown.len())]["id"].as_str().unwrap().to_owned();
                    let path = format!("/api/messages/{id}");
                    let deleted = app.request(Method::DELETE, &path).bearer(&mailbox.jwt).send().await;
                    // It may have expired meanwhile.
                    let shown = messages(&app, &mailbox).await;
                    let is_gone = shown.iter().all(|message| message["id"] != id);
                    assert!(is_gone && deleted.status < 500, "{}, seed {seed}, step {step}", deleted.text());
                }
            }
            3 => app.worker_pass().await,
            4 => app.clock.advance(SignedDuration::from_secs(random.random_range(1..60))),
            5 => app.clock.advance(SignedDuration::from_secs(random.random_range(1..1_800))),
            // Takes what has expired out of the sums.
            6 => {
                store(&app).expire_usage(&[mailbox.id], app.clock.now()).await.unwrap();
            }
            _ => assert_eq!(send(&app, tag, random.random_range(0..3_000)).await.code, 250),
        }
        // A mail may expire between two requests.
        let (used, shown) = loop {
            let before = used(&app, &mailbox).await;
            let shown = sum(&messages(&app, &mailbox).await);
            if used(&app, &mailbox).await == before {
                break (before, shown);
            }
        };
        assert_eq!(used, shown, "seed {seed}, step {step}");
    }
    clear(&app, "").await;
    app.worker_pass().await;
    app.worker_pass().await;
    assert_eq!(app.count("SELECT count(*) FROM message m JOIN mailbox b ON b.id = m.owner").await, 0);
    let left = "SELECT coalesce(sum(bytes), 0)::bigint FROM usage u JOIN mailbox b ON b.id = u.scope
                WHERE u.expired_before = '00000000-0000-0000-0000-000000000000'";
    assert_eq!(app.count(left).await, 0, "seed {seed}");
    assert_eq!(app.count("SELECT count(*) FROM usage WHERE bytes < 0").await, 0, "seed {seed}");
    assert_eq!(app.count("SELECT count(*) FROM message_partition WHERE bytes < 0").await, 0, "seed {seed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn frees_the_usage_of_a_cleared_tag_before_the_worker_deletes_it() {
    let app = App::start().await;
    set_mailbox_quota(&app.pool, app.tenant.id, 100, 10_000).await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), ADDRESS).await;
    assert_eq!(send(&app, "+a", 6_000).await.code, 250);
    assert_eq!(send(&app, "+b", 2_000).await.code, 250);
    assert_eq!(send(&app, "", 6_000).await.status(), "452 4.2.2");
    let mut held = app.pool.begin().await.unwrap();
    clear(&app, "+a").await;
    // Not to be carried out: what is cleared must count no more all the same.
    sqlx::query("SELECT FROM purge FOR UPDATE").execute(&mut *held).await.unwrap();
    assert_eq!(used(&app, &mailbox).await, sum(&messages(&app, &mailbox).await));
    assert_eq!(send(&app, "", 6_000).await.code, 250);
    assert_eq!(send(&app, "", 6_000).await.status(), "452 4.2.2");
    held.rollback().await.unwrap();
    app.worker_pass().await;
    assert_eq!(used(&app, &mailbox).await, sum(&messages(&app, &mailbox).await));
    assert_eq!(messages(&app, &mailbox).await.len(), 2);
}

/// An owner may take long to clear an inbox with much mail. What all mail waits for, the task that commits it and the
/// stream, does not wait for that: a mail that does not fit is deferred at once, and others are stored.
#[tokio::test(flavor = "multi_thread")]
async fn waits_for_no_owner_who_changes_a_full_inbox() {
    let app = App::builder().config(|config| config.limits.mailbox_bytes = 10_000).start().await;
    let mailbox = app.mailbox(None, ADDRESS).await;
    assert_eq!(send(&app, "", 8_000).await.code, 250);
    let mut changing = app.pool.begin().await.unwrap();
    sqlx::query("SELECT lock_inbox($1)").bind(mailbox.id).execute(&mut *changing).await.unwrap();
    assert_eq!(send(&app, "", 8_000).await.status(), "452 4.2.2");
    app.deliver("shared@inbox.localhost", "stored meanwhile", "").await;
    changing.rollback().await.unwrap();
    assert_eq!(messages(&app, &mailbox).await.len(), 1);
}

/// Part of a partition has expired: `used` and the quota leave it out, to the message.
#[tokio::test(flavor = "multi_thread")]
async fn frees_the_usage_of_an_expired_message_before_its_partition_is_dropped() {
    let app = App::builder().config(|config| config.limits.mailbox_bytes = 10_000).start().await;
    let mailbox = app.mailbox(None, ADDRESS).await;
    // The start of a partition, so that both mails lie in one.
    let width = 300 - app.clock.now().as_second() % 300;
    app.clock.advance(SignedDuration::from_secs(width));
    app.worker_pass().await;
    assert_eq!(send(&app, "", 6_000).await.code, 250);
    app.clock.advance(SignedDuration::from_secs(60));
    assert_eq!(send(&app, "", 2_000).await.code, 250);
    assert_eq!(send(&app, "", 6_000).await.status(), "452 4.2.2");
    app.clock.advance(SignedDuration::from_secs(3_600 - 30));
    assert_eq!(messages(&app, &mailbox).await.len(), 1);
    assert_eq!(used(&app, &mailbox).await, sum(&messages(&app, &mailbox).await));
    assert_eq!(send(&app, "", 6_000).await.code, 250, "the expired mail counts no more");
    assert_eq!(send(&app, "", 6_000).await.status(), "452 4.2.2", "and only once");
    assert_eq!(used(&app, &mailbox).await, sum(&messages(&app, &mailbox).await));
}

/// Deliveries, deletions of every kind and the worker lock the same rows: in one order, so that none of them is
/// ended by Postgres as the victim of a deadlock.
#[tokio::test(flavor = "multi_thread")]
async fn delivers_and_deletes_concurrently_without_a_deadlock() {
    let app = App::builder().ingests(2).start().await;
    let mailbox = app.mailbox(Some(&app.tenant.pro), ADDRESS).await;
    // Mail of two classes, which one purge covers.
    for (hours, count) in [(72_i16, 60), (24, 60)] {
        set_retention(&app.pool, app.tenant.id, hours).await;
        app.worker_pass().await;
        for number in 0..count {
            assert_eq!(send(&app, ["", "+a", "+b"][number % 3], 100).await.code, 250);
        }
    }
    let deliveries = join_all((0..8).map(|sender| {
        let app = &app;
        async move {
            for number in 0..40 {
                let tag = ["", "+a", "+b"][(sender + number) % 3];
                let reply = send(app, tag, 100).await;
                assert_eq!(reply.code, 250, "{reply:?}");
            }
        }
    }));
    let deletions = async {
        for round in 0..10 {
            let shown = app.messages(&mailbox).await;
            let singles = shown.iter().take(5).map(|message| {
                let path = format!("/api/messages/{}", message["id"].as_str().unwrap());
                let (app, jwt) = (&app, &mailbox.jwt);
                async move { carried_out(|| app.request(Method::DELETE, &path).bearer(jwt).send()).await }
            });
            let singles = join_all(singles);
            let (singles, ()) = join!(singles, clear(&app, ["+a", "+b", ""][round % 3]));
            for single in singles {
                assert!([204, 404].contains(&single.status), "{}", single.text());
            }
        }
    };
    let worker = async {
        for _ in 0..10 {
            join!(app.worker_pass(), app.worker_pass());
        }
    };
    join!(deliveries, deletions, worker);
    assert_eq!(used(&app, &mailbox).await, sum(&messages(&app, &mailbox).await));
    // What Postgres counts of its own accord shows a moment later: the answers above say it, too.
    assert_eq!(
        app.count("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").await,
        0
    );
}
