//! The same rules for longer, harder and with more connections, and faults in random order.
//!
//! Ignored by default: `tests/run chaos` runs them.

mod mail_wait;
mod seeded;

use std::time::Duration;

use tempmail_tests::postgres::StopMode;

use super::faults::{self, Scale};
use super::fixture::RealtimeFixture;
use super::{delivery, flood, permits, revocation};

/// Full scale: longer than any timeout, more mail than any buffer.
const FULL: Scale = Scale { mails: 200, redis_outage: Duration::from_secs(10), repetitions: 3 };

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: thousands of mails"]
async fn delivers_each_of_5_000_mails_once_to_every_feed() {
    delivery::delivers(5_000).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: Redis is down for 10 s"]
async fn delivers_once_across_a_redis_outage_of_10_s() {
    faults::redis_outage(&mut RealtimeFixture::start().await, FULL).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: the network before Redis is silent for 30 s"]
async fn delivers_once_while_redis_is_silent() {
    faults::silent_redis(&mut RealtimeFixture::start().await, FULL).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: flushes Redis under load"]
async fn delivers_once_across_redis_flushes() {
    faults::redis_flush(&mut RealtimeFixture::start().await, FULL).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: restarts Redis under load"]
async fn delivers_once_after_redis_loses_its_subscriptions() {
    faults::lost_subscriptions(&mut RealtimeFixture::start().await, FULL).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: loses every third PUBLISH under load"]
async fn delivers_once_while_publishes_are_lost() {
    faults::lost_publishes(&mut RealtimeFixture::start().await, FULL).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: kills an API process under load"]
async fn delivers_once_when_an_api_process_is_killed() {
    faults::killed_api(&mut RealtimeFixture::start().await, FULL).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: kills ingest processes under load"]
async fn delivers_once_when_ingest_processes_are_killed() {
    faults::killed_ingest(&mut RealtimeFixture::start().await, FULL).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: overruns the ring of a paused API process"]
async fn delivers_once_when_a_paused_api_misses_more_than_its_ring_holds() {
    faults::paused_api(&mut RealtimeFixture::start().await, FULL).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: restarts Postgres in every way under load"]
async fn delivers_once_across_every_kind_of_postgres_restart() {
    let (postgres, mut fixture) = faults::with_own_postgres().await;
    let stops = [StopMode::Immediate, StopMode::Fast, StopMode::Kill];
    faults::postgres_restart(&mut fixture, FULL, &postgres, &stops).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: 15,000 connections"]
async fn serves_followers_beside_15_000_connections() {
    flood::serves_followers_beside(15_000).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: asserts on time"]
async fn frees_the_permits_of_a_killed_process_within_6_s() {
    let times = permits::times_to_free_permits_of_a_killed_process().await;
    assert!(times.iter().all(|time| *time <= Duration::from_secs(6)), "{times:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: asserts on time, all causes of revocation at once"]
async fn every_revocation_reaches_subscribers_within_5_s() {
    revocation::matrix::within_5_s(true).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: asserts on time, all causes of revocation at once, without Redis"]
async fn every_revocation_reaches_subscribers_within_5_s_without_redis() {
    revocation::matrix::within_5_s(false).await;
}
