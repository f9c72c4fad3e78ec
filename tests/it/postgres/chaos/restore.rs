//! The database goes back to an earlier moment, and positions of the stream are given a second time: clients with
//! cursors of before, and those that stayed connected, get all mail of afterwards.

use reqwest::Method;
use serde_json::{Value, json};
use tempmail_model::token::TokenKind;
use tempmail_tests::postgres::{DedicatedPostgres, REPLICATION, StopMode};
use tempmail_tests::wait::eventually;
use tempmail_tests::{CommandOutput, EventStream, Feed, Fleet, Follower};

const ADDRESS: &str = "twice@inbox.localhost";
const MAILBOX: &str = "box@inbox.localhost";
/// Mails that the copy lacks, and those after the restore: more, so that all positions are given again.
const LOST: usize = 5;
const AFTER: usize = 12;

async fn start(postgres: &DedicatedPostgres) -> Fleet {
    Fleet::builder().apis(1).ingests(1).workers(1).database(postgres.database().await).start().await
}

async fn deliver(fleet: &Fleet, kind: &str, count: usize) {
    for i in 0..count {
        eventually("mail is accepted", || async {
            let message =
                tempmail_tests::smtp::message("Ada <ada@client.example>", &format!("{kind} {i}"), "");
            let reply =
                tempmail_tests::send_mail(fleet.smtp(0), "ada@client.example", ADDRESS, &message).await;
            (reply.code == 250).then_some(())
        })
        .await;
    }
}

/// The subjects and the cursor of a long-poll.
async fn poll(fleet: &Fleet, live: &str, since: Option<&str>) -> (Vec<String>, String) {
    let since = since.map(|since| format!("&since={since}")).unwrap_or_default();
    let path = format!("/v1/inbox/{ADDRESS}?limit=50{since}");
    let listed = eventually("a long-poll is answered", || async {
        let answer = fleet.request(0, Method::GET, &path).live(live).send().await;
        (answer.status == 200).then(|| answer.json())
    })
    .await;
    let emails = listed["emails"].as_array().unwrap().iter().rev();
    let subjects = emails.map(|email| email["subject"].as_str().unwrap().to_owned()).collect();
    (subjects, listed["next_since"].as_str().unwrap().to_owned())
}

/// Every subject after a cursor, in the order of the stream.
async fn follow(fleet: &Fleet, live: &str, cursor: &str, until: &str) -> Vec<String> {
    let (mut all, mut since): (Vec<String>, _) = (Vec::new(), cursor.to_owned());
    while all.last().is_none_or(|last| last != until) {
        let (subjects, next) = poll(fleet, live, Some(&since)).await;
        all.extend(subjects);
        since = next;
    }
    all
}

/// Those of a kind, once each in their order.
fn of_kind(kind: &str, count: usize) -> Vec<String> {
    (0..count).map(|i| format!("{kind} {i}")).collect()
}

/// Waits until a follower has met all mail after the restore.
async fn has_all_after(follower: &Follower) {
    eventually("a follower meets all mail", || async {
        let subjects: Vec<String> = follower.receipts().into_iter().map(|receipt| receipt.subject).collect();
        of_kind("after", AFTER).iter().all(|of| subjects.contains(of)).then_some(())
    })
    .await;
}

/// Sends mail, goes back by `go_back` and sends more: nothing of that is missed. `live` is a token that only this uses.
async fn misses_nothing(fleet: &Fleet, live: &str, go_back: impl AsyncFnOnce()) {
    let followers = [Feed::Inbox(ADDRESS.to_owned()), Feed::SseAddress(ADDRESS.to_owned())]
        .map(|feed| fleet.follow(0, &fleet.tenant.live, feed));
    for follower in &followers {
        follower.ready().await;
    }
    deliver(fleet, "lost", LOST).await;
    let (_, cursor) = poll(fleet, live, None).await;
    let request = fleet.request(0, Method::GET, &format!("/v1/sse/addr?address={ADDRESS}&since={cursor}"));
    let mut open = EventStream::open(request.live(live)).await;
    go_back().await;
    deliver(fleet, "after", AFTER).await;

    let last = format!("after {}", AFTER - 1);
    let met = follow(fleet, live, &cursor, &last).await;
    assert_eq!(met, of_kind("after", AFTER), "a cursor of before meets all mail, each once");
    let mut streamed: Vec<String> = Vec::new();
    while streamed.last() != Some(&last) {
        let event = open.next().await;
        if event.name == "new_email" {
            let data: Value = serde_json::from_str(&event.data).unwrap();
            streamed.push(data["subject"].as_str().unwrap().to_owned());
        }
    }
    for subject in of_kind("after", AFTER) {
        assert!(streamed.contains(&subject), "a stream that stayed open misses {subject}: {streamed:?}");
    }
    for follower in &followers {
        has_all_after(follower).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: restores a copy of the database under its processes"]
async fn clients_miss_nothing_after_a_copy_was_restored() {
    let postgres = DedicatedPostgres::start().await;
    let fleet = start(&postgres).await;
    let mailbox = fleet.mailbox(None, MAILBOX).await;
    let live = fleet.token(&fleet.tenant, TokenKind::Live).await;
    let revoked = fleet.token(&fleet.tenant, TokenKind::Live).await;
    deliver(&fleet, "before", 3).await;
    postgres.stop(StopMode::Fast).await;
    let copy = postgres.copy_data();
    postgres.ensure_started().await;

    let session = eventually("a session begins", || async {
        let request = fleet.request(0, Method::POST, "/pro/api/session");
        let answer = request.json(&json!({"token": fleet.tenant.pro})).send().await;
        (answer.status == 200).then(|| answer.json()["token"].as_str().unwrap().to_owned())
    })
    .await;
    misses_nothing(&fleet, &live, async || {
        sqlx::query(
            "UPDATE api_token SET revoked_at = now() WHERE id = (SELECT max(id::text)::uuid FROM api_token)",
        )
        .execute(&fleet.pool)
        .await
        .unwrap();
        postgres.stop(StopMode::Fast).await;
        postgres.replace_data(&copy);
        postgres.ensure_started().await;
        let restored = CommandOutput::run(
            &["database", "restored", "--json"],
            &[("TEMPMAIL_POSTGRES__URL", &fleet.database().url())],
        )
        .await
        .json();
        let listed = restored["tokens"].as_array().unwrap().iter().map(|token| token["hint"].clone());
        assert!(listed.into_iter().any(|hint| revoked.ends_with(hint.as_str().unwrap())), "{restored}");
        assert_eq!(restored["mailboxes"], 1);
    })
    .await;

    let by_jwt = fleet.request(0, Method::GET, "/api/messages").bearer(&mailbox.jwt).send().await;
    assert_eq!((by_jwt.status, by_jwt.error(401).as_str()), (401, "invalid_token"));
    let by_session = fleet.request(0, Method::GET, "/pro/api/accounts").bearer(&session).send().await;
    assert_eq!(by_session.error(440), "session_expired");
    let sign_in = json!({"address": MAILBOX, "password": mailbox.password});
    fleet.request(0, Method::POST, "/api/token").json(&sign_in).send().await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: puts a server in the place of another that lacks its last commits"]
async fn clients_miss_nothing_after_an_asynchronous_standby_took_over() {
    let postgres = DedicatedPostgres::start_with(&REPLICATION).await;
    let fleet = start(&postgres).await;
    let live = fleet.token(&fleet.tenant, TokenKind::Live).await;
    deliver(&fleet, "before", 3).await;
    postgres.allow_replication().await;
    let standby = postgres.base_backup();
    misses_nothing(&fleet, &live, async || {
        postgres.stop(StopMode::Immediate).await;
        postgres.replace_data(&standby);
        // It is promoted at the end of what it has: the same server, and another timeline.
        let settings = [
            "restore_command = 'false'",
            "recovery_target = 'immediate'",
            "recovery_target_action = 'promote'",
        ];
        let data = postgres.data_directory();
        postgres.run_as_its_user(&format!(
            "cd '{}'\ncat >>postgresql.auto.conf <<'END'\n{}\nEND\ntouch recovery.signal",
            data.display(),
            settings.join("\n")
        ));
        postgres.ensure_started().await;
    })
    .await;
    let count = sqlx::query_scalar("SELECT count(*) FROM stream_generation").fetch_one(&fleet.pool).await;
    let generations: i64 = count.unwrap();
    assert_eq!(generations, 2, "one begins by itself, and once");
}
