//! Something dies while mail flows: whoever listens meets every mail once.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tempmail_tests::postgres::{DedicatedPostgres, StopMode};
use tempmail_tests::{Fleet, SmtpClient, smtp};
use tokio::time::sleep;

use super::senders::Senders;
use super::stage::{DOMAIN, Stage, redis_is_well};

/// Mails before, and after, what is done to them.
const SOME: usize = 200;

/// How long Redis is away: far longer than anything waits for it.
const AWAY: Duration = Duration::from_secs(10);

/// Arrivals of a burst: more than a process keeps at hand (8,192).
const BURST: usize = 10_000;

/// Octets of the shortest PUBLISH that tells of mail; what is shorter is a probe.
const ARRIVALS_MIN: usize = 150;

#[tokio::test(flavor = "multi_thread")]
async fn redis_is_stopped_for_10_s_and_started() {
    let mut stage = Stage::set().await;
    let senders = Senders::start(&stage.flow());
    senders.go_on_for(SOME).await;
    stage.redis.stop();
    let stopped = Instant::now();
    // What is tried is an absence of this length.
    sleep(AWAY).await;
    let until = Instant::now();
    stage.redis.start();
    redis_is_well(&stage.fleet).await;
    senders.go_on_for(SOME).await;
    let accepted = senders.stop().await;
    stage.all_is_met(&accepted).await;
    stage.print_delay("Redis away", &accepted, stopped..until);
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_is_flushed() {
    let stage = Stage::set().await;
    let senders = Senders::start(&stage.flow());
    for _ in 0..3 {
        senders.go_on_for(SOME).await;
        stage.redis.flush();
    }
    senders.go_on_for(SOME).await;
    let accepted = senders.stop().await;
    stage.all_is_met(&accepted).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_is_restarted_while_connections_stay_and_the_subscription_is_gone() {
    let mut stage = Stage::set().await;
    let senders = Senders::start(&stage.flow());
    senders.go_on_for(SOME).await;
    stage.proxy.keep_clients_on_restart(true);
    stage.redis.stop();
    stage.redis.start();
    senders.go_on_for(SOME).await;
    stage.proxy.drop_subscriptions();
    senders.go_on_for(SOME).await;
    redis_is_well(&stage.fleet).await;
    senders.go_on_for(SOME).await;
    let accepted = senders.stop().await;
    stage.all_is_met(&accepted).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_third_publish_is_lost() {
    let stage = Stage::set().await;
    let senders = Senders::start(&stage.flow());
    senders.go_on_for(SOME).await;
    stage.proxy.drop_publishes(3, ARRIVALS_MIN);
    senders.go_on_for(5 * SOME).await;
    let lost = stage.proxy.dropped_publishes();
    assert!(lost > SOME / 4, "only {lost} were lost");
    stage.proxy.drop_no_publishes();
    senders.go_on_for(SOME).await;
    let accepted = senders.stop().await;
    stage.all_is_met(&accepted).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_answers_http_is_killed() {
    let stage = Stage::set().await;
    let senders = Senders::start(&stage.flow());
    senders.go_on_for(SOME).await;
    stage.fleet.api(0).kill().await;
    stage.move_listeners(0, 1);
    senders.go_on_for(2 * SOME).await;
    stage.fleet.api(0).restart().await;
    stage.move_listeners(0, 0);
    senders.go_on_for(2 * SOME).await;
    let accepted = senders.stop().await;
    stage.all_is_met(&accepted).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_takes_mail_is_killed() {
    let stage = Stage::set().await;
    let senders = Senders::start(&stage.flow());
    for victim in [0, 1] {
        senders.go_on_for(SOME).await;
        stage.fleet.ingest(victim).kill().await;
        senders.go_on_for(SOME).await;
        stage.fleet.ingest(victim).restart().await;
    }
    senders.go_on_for(SOME).await;
    let accepted = senders.stop().await;
    stage.all_is_met(&accepted).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_stands_still_while_more_arrives_than_it_keeps_at_hand() {
    let stage = Stage::set().await;
    let senders = Senders::start(&stage.flow());
    senders.go_on_for(SOME).await;
    stage.fleet.api(0).signal(Signal::SIGSTOP);
    // Each of these mails is a hundred arrivals for those who listen to the domain.
    let mut client = SmtpClient::connect_with_ehlo(stage.fleet.smtp(0)).await;
    for nth in 0..BURST / 100 {
        let to: Vec<String> = (0..100).map(|of| format!("burst-{nth}-{of}@{DOMAIN}")).collect();
        let to: Vec<&str> = to.iter().map(|address| &**address).collect();
        let message = smtp::message("Ada <ada@client.example>", &format!("burst {nth}"), "");
        assert_eq!(client.transact("ada@client.example", &to, &message).await.code, 250);
    }
    stage.fleet.api(0).signal(Signal::SIGCONT);
    senders.go_on_for(SOME).await;
    let accepted = senders.stop().await;
    stage.all_is_met(&accepted).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_is_restarted() {
    let postgres = DedicatedPostgres::start().await;
    let stage = Stage::set_with(Fleet::builder().database(postgres.database().await)).await;
    let senders = Senders::start(&stage.flow());
    for how in [StopMode::Immediate, StopMode::Fast, StopMode::Kill] {
        senders.go_on_for(SOME).await;
        postgres.restart(how).await;
    }
    senders.go_on_for(SOME).await;
    let accepted = senders.stop().await;
    stage.all_is_met(&accepted).await;
}
