//! Fleets of processes, and their followers.

use std::collections::BTreeSet;

use tempmail_tests::app::SYSTEM_DOMAIN;
use tempmail_tests::fleet::Role;
use tempmail_tests::postgres::{DedicatedPostgres, StopMode};
use tempmail_tests::{Feed, Fleet, Follower, OutgoingMail};

fn mail(address: &str, number: usize) -> OutgoingMail {
    OutgoingMail { recipient: address.to_owned(), subject: format!("mail {number}") }
}

#[tokio::test(flavor = "multi_thread")]
async fn follower_receives_each_mail_once_across_restarts() {
    let fleet = Fleet::builder().start().await;
    let address = format!("fleet@{SYSTEM_DOMAIN}");
    let mut follower = fleet.follow(0, &fleet.tenant.live, Feed::Inbox(address.clone()));
    follower.ready().await;
    fleet.deliver(0, &address, "to the first").await;
    fleet.deliver(1, &address, "to the second").await;
    follower.wait_for(2).await;

    fleet.api(0).kill().await;
    fleet.ingest(0).kill().await;
    follower.switch_to(fleet.http(1));
    fleet.deliver(1, &address, "while the first are away").await;
    follower.wait_for(3).await;

    let (pid, port) = (fleet.api(0).pid(), fleet.http(0).port());
    fleet.api(0).restart().await;
    fleet.ingest(0).restart().await;
    assert_ne!(fleet.api(0).pid(), pid);
    assert_eq!(fleet.http(0).port(), port);
    follower.switch_to(fleet.http(0));
    let ended = fleet.api(1).terminate().await;
    assert!(ended.status.success(), "{ended:?}");
    fleet.deliver(0, &address, "after all that").await;
    follower.wait_for(4).await;
    follower.stop().await;
    assert_eq!(follower.received(), fleet.stored_message_ids(&address).await);
    assert_eq!(follower.duplicates(), 0);
    fleet.api(1).wait_for_log("draining").await;
    assert!(fleet.api(0).resident_bytes() > 0 && fleet.worker(0).is_ready().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn follower_reports_a_rejection() {
    let fleet = Fleet::builder().apis(1).ingests(1).workers(0).start().await;
    let way = Feed::Inbox(format!("fleet@{SYSTEM_DOMAIN}"));
    let follower = Follower::start_at(fleet.http(0), "tm_live_0", way, Some("x"));
    assert_eq!(follower.refused().await, "invalid_token");
}

#[tokio::test(flavor = "multi_thread")]
async fn applies_settings_to_all_processes_or_one() {
    let fleet = Fleet::builder()
        .apis(2)
        .ingests(1)
        .workers(0)
        .config(|config| config.limits.password_min = 9)
        .env("TEMPMAIL_LIMITS__V1_PER_SECOND", "100")
        .env_for(Role::Api, 1, "TEMPMAIL_LIMITS__V1_PER_SECOND", "7")
        .start()
        .await;
    for (index, policy) in [(0, "100"), (1, "7")] {
        let request = fleet.request(index, reqwest::Method::GET, "/v1/tokens").live(&fleet.tenant.live);
        let answer = request.send().await;
        answer.expect(200);
        assert!(answer.header("ratelimit-policy").contains(&format!("q={policy};")), "{answer:?}");
    }
    let body = serde_json::json!({"address": format!("short@{SYSTEM_DOMAIN}"), "password": "8 octets"});
    let request = fleet.request(0, reqwest::Method::POST, "/api/accounts").json(&body);
    request.send().await.assert_api_error(400, "password_too_short");
}

#[tokio::test(flavor = "multi_thread")]
async fn committed_mail_survives_every_kind_of_postgres_restart() {
    let postgres = DedicatedPostgres::start().await;
    let database = postgres.database().await;
    let fleet = Fleet::builder().apis(1).ingests(1).workers(1).database(database).start().await;
    let address = format!("fleet@{SYSTEM_DOMAIN}");
    let follower = fleet.follow(0, &fleet.tenant.live, Feed::Inbox(address.clone()));
    follower.ready().await;
    let mails: Vec<OutgoingMail> = (0..300).map(|number| mail(&address, number)).collect();
    // So slowly that mails are left for each restart, even if the follower learns of them late.
    let (sent, ()) = tokio::join!(fleet.load(4, Some(30)).send(&mails), async {
        for (number, how) in (1..).zip([StopMode::Fast, StopMode::Immediate, StopMode::Kill]) {
            follower.wait_for(50 * number).await;
            postgres.restart(how).await;
        }
    });
    let stored = fleet.stored_message_ids(&address).await;
    follower.wait_for(stored.len()).await;
    assert_eq!(follower.received(), stored);
    let subjects: BTreeSet<String> = follower.receipts().into_iter().map(|it| it.subject).collect();
    assert_eq!(subjects, sent.iter().map(|it| it.subject.clone()).collect());
    assert!(sent.iter().any(|it| it.attempts > 1), "no mail was deferred");
}
