//! Mail flows while something fails: every subscriber receives every mail once.
//!
//! Each fault is a function of its [`Scale`]. The tests here run several small ones over one fixture;
//! [`super::chaos`] runs each at full scale.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tempmail_tests::load::senders::{LoadProfile, Senders};
use tempmail_tests::postgres::{DedicatedPostgres, StopMode};
use tempmail_tests::wait::eventually;
use tempmail_tests::{Fleet, Silence, SmtpClient, smtp};
use tokio::time::sleep;

use super::fixture::{DOMAIN, RealtimeFixture, redis_is_connected};

/// How much happens.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// Mails before, between and after faults.
    pub mails: usize,
    /// Length of an outage of Redis.
    pub redis_outage: Duration,
    /// Repetitions of a fault that is quick.
    pub repetitions: usize,
}

/// Of the tests that always run.
const SMALL: Scale = Scale { mails: 25, redis_outage: Duration::from_millis(300), repetitions: 1 };

/// More arrivals than a process keeps in its ring (8,192).
const BURST: usize = 8_500;

/// Bytes of the shortest PUBLISH with an arrival; shorter ones are probes.
const ARRIVALS_MIN: usize = 150;

#[tokio::test(flavor = "multi_thread")]
async fn delivers_once_across_redis_faults() {
    let mut fixture = RealtimeFixture::start().await;
    redis_outage(&mut fixture, SMALL).await;
    redis_flush(&mut fixture, SMALL).await;
    lost_subscriptions(&mut fixture, SMALL).await;
    lost_publishes(&mut fixture, SMALL).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn delivers_once_when_processes_are_killed() {
    let mut fixture = RealtimeFixture::start().await;
    killed_api(&mut fixture, SMALL).await;
    killed_ingest(&mut fixture, SMALL).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn delivers_once_across_a_postgres_restart() {
    let (postgres, mut fixture) = with_own_postgres().await;
    postgres_restart(&mut fixture, SMALL, &postgres, &[StopMode::Immediate]).await;
}

/// A fixture over a Postgres that may be restarted.
pub async fn with_own_postgres() -> (DedicatedPostgres, RealtimeFixture) {
    let postgres = DedicatedPostgres::start().await;
    let fleet = Fleet::builder().database(postgres.database().await);
    (postgres, RealtimeFixture::start_with(fleet).await)
}

/// Redis is down for a while.
pub async fn redis_outage(fixture: &mut RealtimeFixture, scale: Scale) {
    let mut outage = None;
    let accepted = fixture
        .deliver_across(scale.mails, async |fixture, _| {
            fixture.redis.stop();
            let stopped = Instant::now();
            sleep(scale.redis_outage).await;
            outage = Some(stopped..Instant::now());
            fixture.redis.start();
            redis_is_connected(&fixture.fleet).await;
        })
        .await;
    fixture.print_delays("Redis outage", &accepted, outage.unwrap());
}

/// Connections to Redis stay open, and carry nothing, in one direction or both.
pub async fn silent_redis(fixture: &mut RealtimeFixture, scale: Scale) {
    fixture
        .deliver_across(scale.mails, async |fixture, _| {
            for silence in [Silence::ToServer, Silence::ToClient, Silence::Both] {
                fixture.proxy.fall_silent(silence);
                sleep(scale.redis_outage).await;
                fixture.proxy.restore();
                redis_is_connected(&fixture.fleet).await;
            }
        })
        .await;
}

/// Redis loses its data.
pub async fn redis_flush(fixture: &mut RealtimeFixture, scale: Scale) {
    fixture
        .deliver_across(scale.mails, async |fixture, senders| {
            for _ in 0..scale.repetitions {
                fixture.redis.flush();
                senders.wait_for_accepted(scale.mails).await;
            }
        })
        .await;
}

/// Redis restarts behind open connections and drops the subscriptions.
pub async fn lost_subscriptions(fixture: &mut RealtimeFixture, scale: Scale) {
    fixture
        .deliver_across(scale.mails, async |fixture, senders| {
            fixture.proxy.keep_clients_on_restart(true);
            fixture.redis.stop();
            fixture.redis.start();
            senders.wait_for_accepted(scale.mails).await;
            fixture.proxy.drop_subscriptions();
            senders.wait_for_accepted(scale.mails).await;
            redis_is_connected(&fixture.fleet).await;
            fixture.proxy.keep_clients_on_restart(false);
        })
        .await;
}

/// Every third PUBLISH is lost.
pub async fn lost_publishes(fixture: &mut RealtimeFixture, scale: Scale) {
    fixture
        .deliver_across(scale.mails, async |fixture, senders| {
            fixture.proxy.drop_publishes(3, ARRIVALS_MIN);
            senders.wait_for_accepted(5 * scale.mails).await;
            // One message may have many arrivals.
            eventually("enough messages are dropped", || async {
                (fixture.proxy.dropped_publishes() > scale.mails / 4).then_some(())
            })
            .await;
            fixture.proxy.drop_no_publishes();
        })
        .await;
}

/// An API process is killed; its subscribers move to the other one and back.
pub async fn killed_api(fixture: &mut RealtimeFixture, scale: Scale) {
    fixture
        .deliver_across(scale.mails, async |fixture, senders| {
            fixture.fleet.api(0).kill().await;
            fixture.move_subscribers(0, 1);
            senders.wait_for_accepted(2 * scale.mails).await;
            fixture.fleet.api(0).restart().await;
            fixture.move_subscribers(0, 0);
            senders.wait_for_accepted(scale.mails).await;
        })
        .await;
}

/// Both ingest processes are killed, one after the other.
pub async fn killed_ingest(fixture: &mut RealtimeFixture, scale: Scale) {
    fixture
        .deliver_across(scale.mails, async |fixture, senders| {
            for victim in [0, 1] {
                fixture.fleet.ingest(victim).kill().await;
                senders.wait_for_accepted(scale.mails).await;
                fixture.fleet.ingest(victim).restart().await;
                senders.wait_for_accepted(scale.mails).await;
            }
        })
        .await;
}

/// An API process is paused while more arrives than its ring holds.
pub async fn paused_api(fixture: &mut RealtimeFixture, scale: Scale) {
    fixture
        .deliver_across(scale.mails, async |fixture, _| {
            fixture.fleet.api(0).signal(Signal::SIGSTOP);
            // Each of these mails is a hundred arrivals for the subscribers of the domain.
            let mut client = SmtpClient::connect_with_ehlo(fixture.fleet.smtp(0)).await;
            for nth in 0..BURST / 100 {
                let to: Vec<String> = (0..100).map(|of| format!("burst-{nth}-{of}@{DOMAIN}")).collect();
                let to: Vec<&str> = to.iter().map(|address| &**address).collect();
                let message = smtp::message("Ada <ada@client.example>", &format!("burst {nth}"), "");
                assert_eq!(client.transact("ada@client.example", &to, &message).await.code, 250);
            }
            fixture.fleet.api(0).signal(Signal::SIGCONT);
        })
        .await;
}

/// Postgres restarts.
pub async fn postgres_restart(
    fixture: &mut RealtimeFixture,
    scale: Scale,
    postgres: &DedicatedPostgres,
    stops: &[StopMode],
) {
    fixture
        .deliver_across(scale.mails, async |_, senders| {
            for stop in stops {
                postgres.restart(*stop).await;
                senders.wait_for_accepted(scale.mails).await;
            }
        })
        .await;
}

/// Concurrent senders.
const CONNECTIONS: usize = 16;

#[tokio::test(flavor = "multi_thread")]
async fn delivers_each_of_480_mails_once_to_every_feed() {
    delivers(480).await;
}

/// Sends so many mails as fast as they are accepted, and asserts that every subscriber receives each once.
pub async fn delivers(mails: usize) {
    let fixture = RealtimeFixture::start().await;
    let profile = LoadProfile {
        connections: CONNECTIONS,
        interval: None,
        mails_per_connection: Some(mails.div_ceil(CONNECTIONS)),
        ..fixture.load()
    };
    let accepted = Senders::start(&profile).finish().await;
    assert!(accepted.len() >= mails);
    fixture.assert_delivered(&accepted).await;
}
