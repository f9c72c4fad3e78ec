//! While Postgres is silent, senders are deferred, processes are not ready and are not restarted, and rights end all
//! the same. Afterwards all goes on, and nothing that was acknowledged is lost.

use std::time::{Duration, Instant};

use tempmail_model::token::TokenKind;
use tempmail_tests::fleet::{Role, RoleProcess};
use tempmail_tests::postgres::{Database, DedicatedPostgres, PostgresProxy};
use tempmail_tests::smtp::message;
use tempmail_tests::wait::eventually;
use tempmail_tests::{EventStream, Feed, Fleet, Follower, Reply, Silence, send_mail};
use tokio::time::{sleep, timeout};

/// How long a sender waits for an answer at most, and a process may be ready although it can't serve.
const NOTICED_WITHIN: Duration = Duration::from_secs(10);
/// How long a right may outlive its end, and how long all may take to go on.
const RIGHTS_END_WITHIN: Duration = Duration::from_secs(5);
/// How long Postgres is silent: longer than a lease, and than every end of a wait.
const SILENCE: Duration = Duration::from_secs(20);

const ADDRESS: &str = "calm@inbox.localhost";

/// Processes over a proxy before Postgres; the second `ingest` bypasses it.
async fn start_behind(proxy: &PostgresProxy, database: Database) -> Fleet {
    Fleet::builder()
        .apis(1)
        .ingests(2)
        .workers(1)
        .database(database)
        .postgres_through(proxy.port())
        .direct(Role::Ingest, 1)
        .start()
        .await
}

/// The reply to a mail, which comes within the time in which senders are answered.
async fn answer(fleet: &Fleet, subject: &str) -> Reply {
    let message = message("Ada <ada@client.example>", subject, "");
    let sent = send_mail(fleet.smtp(0), "ada@client.example", ADDRESS, &message);
    timeout(NOTICED_WITHIN, sent).await.expect("senders are answered within 10 s")
}

async fn becomes_unready(process: &RoleProcess) {
    let not_ready =
        eventually("a process is not ready", || async { (!process.is_ready().await).then_some(()) });
    timeout(NOTICED_WITHIN, not_ready).await.expect("a process that can't serve is not ready within 10 s");
}

/// Waits until mail is accepted again and every process is ready.
async fn goes_on(fleet: &Fleet) {
    let going_on = async {
        eventually("mail is accepted again", || async {
            let code = answer(fleet, "after").await.code;
            assert!(code == 250 || code == 451, "{code}");
            (code == 250).then_some(())
        })
        .await;
        for process in fleet.processes() {
            process.wait_until_ready().await;
        }
    };
    timeout(RIGHTS_END_WITHIN, going_on).await.expect("all goes on within 5 s");
}

/// Waits until a follower has received every stored mail, each once.
async fn receives_everything(fleet: &Fleet, follower: &Follower) {
    let stored = fleet.stored_message_ids(ADDRESS).await;
    follower.wait_for(stored.len()).await;
    assert_eq!((follower.received(), follower.duplicates()), (stored, 0));
}

async fn falls_silent(silence: Silence) {
    let postgres = DedicatedPostgres::start().await;
    let proxy = PostgresProxy::start_before(postgres.socket()).await;
    let fleet = start_behind(&proxy, postgres.database().await).await;
    let followers = [Feed::Inbox(ADDRESS.to_owned()), Feed::SseAddress(ADDRESS.to_owned())]
        .map(|feed| fleet.follow(0, &fleet.tenant.live, feed));
    for follower in &followers {
        follower.ready().await;
    }
    let revoked = fleet.token(&fleet.tenant, TokenKind::Live).await;
    let request = fleet.request(0, reqwest::Method::GET, &format!("/v1/sse/addr?address={ADDRESS}"));
    let mut of_revoked = EventStream::open(request.live(&revoked)).await;
    assert_eq!(answer(&fleet, "before").await.code, 250);
    of_revoked.next().await;

    proxy.fall_silent(silence);
    let silent_since = Instant::now();
    sqlx::query(
        "UPDATE api_token SET revoked_at = now() WHERE id = (SELECT max(id::text)::uuid FROM api_token)",
    )
    .execute(&fleet.pool)
    .await
    .unwrap();
    // Twice: over connections that were open, and over new ones.
    for _ in 0..2 {
        assert_eq!(answer(&fleet, "during").await.status(), "451 4.3.0");
    }
    for process in [fleet.api(0), fleet.ingest(0), fleet.worker(0)] {
        becomes_unready(process).await;
    }
    // Of this mail the processes behind the proxy learn once they can read.
    sleep(RIGHTS_END_WITHIN.saturating_sub(silent_since.elapsed())).await;
    fleet.deliver(1, ADDRESS, "after the right ended").await;
    sleep(SILENCE.saturating_sub(silent_since.elapsed())).await;
    for process in fleet.processes() {
        assert!(process.is_live().await, "a restart would not help: {:?}", process.role());
    }
    let age = fleet.api(0).metric("tempmail_stream_poll_age_seconds").await;
    assert!(age > RIGHTS_END_WITHIN.as_secs_f64(), "{age}");

    proxy.restore();
    goes_on(&fleet).await;
    let end = of_revoked.ended().await;
    assert!(end.events.iter().all(|event| event.name != "new_email"), "{end:?}");
    for follower in &followers {
        receives_everything(&fleet, follower).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: the network before Postgres is silent for 20 s"]
async fn defers_mail_and_ends_rights_while_postgres_hears_nothing() {
    falls_silent(Silence::ToServer).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: the network before Postgres is silent for 20 s"]
async fn defers_mail_and_ends_rights_while_postgres_is_not_heard() {
    falls_silent(Silence::ToClient).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: the network before Postgres is silent for 20 s"]
async fn defers_mail_and_ends_rights_while_the_network_is_silent() {
    falls_silent(Silence::Both).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: suspends the processes of Postgres"]
async fn replaces_connections_whose_server_process_is_suspended() {
    let postgres = DedicatedPostgres::start().await;
    let builder = Fleet::builder().apis(1).ingests(1).workers(1);
    let fleet = builder.database(postgres.database().await).start().await;
    let follower = fleet.follow(0, &fleet.tenant.live, Feed::SseAddress(ADDRESS.to_owned()));
    follower.ready().await;
    assert_eq!(answer(&fleet, "before").await.code, 250);
    for role in ["tempmail-ingest", "tempmail-api", "tempmail-worker"] {
        let _suspended = postgres.suspend_backends(&fleet.pool, role).await;
        eventually("mail is accepted over other connections", || async {
            let code = answer(&fleet, "during").await.code;
            assert!(code == 250 || code == 451, "{code}");
            (code == 250).then_some(())
        })
        .await;
        for process in fleet.processes() {
            process.wait_until_ready().await;
        }
        // They are still suspended.
        receives_everything(&fleet, &follower).await;
    }
}
