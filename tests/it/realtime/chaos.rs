//! The same rules for longer, harder and with more connections, and faults in random order.
//!
//! Ignored by default: `tests/run chaos` runs them.

use std::time::Duration;

use nix::sys::signal::Signal;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use tempmail_model::token::TokenKind;
use tempmail_tests::fleet::{Role, RoleProcess};
use tempmail_tests::load::senders::Senders;
use tempmail_tests::postgres::{DedicatedPostgres, StopMode};
use tempmail_tests::{Feed, Follower};
use tokio::time::sleep;
use uuid::Uuid;

use super::faults::{Scale, killed_api, postgres_restart, redis_outage, with_own_postgres};
use super::fixture::{DOMAIN, RealtimeFixture, redis_is_connected};
use super::{faults, flood, permits, revocation};

/// Full scale: longer than any timeout, more mail than any buffer.
const FULL: Scale = Scale { mails: 200, redis_outage: Duration::from_secs(10), repetitions: 3 };

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: thousands of mails"]
async fn delivers_each_of_5_000_mails_once_to_every_feed() {
    faults::delivers(5_000).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: Redis is down for 10 s"]
async fn delivers_once_across_a_redis_outage_of_10_s() {
    redis_outage(&mut RealtimeFixture::start().await, FULL).await;
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
    killed_api(&mut RealtimeFixture::start().await, FULL).await;
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
    let (postgres, mut fixture) = with_own_postgres().await;
    let stops = [StopMode::Immediate, StopMode::Fast, StopMode::Kill];
    postgres_restart(&mut fixture, FULL, &postgres, &stops).await;
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

/// A follower that began after there was mail, and the addresses whose mail it has to receive.
struct LateFollower {
    follower: Follower,
    like: String,
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: restarts an API process, Redis and Postgres under load"]
async fn waits_return_each_mail_once_and_none_of_before_across_restarts_of_api_redis_and_postgres() {
    let (postgres, mut fixture) = with_own_postgres().await;
    let senders = Senders::start(&fixture.load());
    senders.wait_for_accepted(FULL.mails).await;
    senders.stop().await;
    let old: i64 =
        sqlx::query_scalar("SELECT max(seq) FROM message").fetch_one(&fixture.fleet.pool).await.unwrap();
    let followers = late_followers(&fixture).await;

    killed_api(&mut fixture, FULL).await;
    let accepted = fixture
        .deliver_across(FULL.mails, async |fixture, senders| {
            for api in [0, 1] {
                let ended = fixture.fleet.api(api).terminate().await;
                assert!(ended.status.success(), "{ended:?}");
                fixture.move_subscribers(api, 1 - api);
                senders.wait_for_accepted(FULL.mails).await;
                fixture.fleet.api(api).restart().await;
                fixture.move_subscribers(api, api);
            }
        })
        .await;
    assert!(!accepted.is_empty());
    redis_outage(&mut fixture, FULL).await;
    let stops = [StopMode::Immediate, StopMode::Fast, StopMode::Kill];
    postgres_restart(&mut fixture, FULL, &postgres, &stops).await;

    for LateFollower { follower, like } in &followers {
        let stored: Vec<Uuid> =
            sqlx::query_scalar("SELECT id FROM message WHERE address LIKE $1 AND seq > $2 ORDER BY seq")
                .bind(like)
                .bind(old)
                .fetch_all(&fixture.fleet.pool)
                .await
                .unwrap();
        follower.wait_for_message(*stored.last().expect("there is mail")).await;
        assert_eq!(follower.received(), stored, "{like}: missed, foreign, or of before");
        assert_eq!(follower.duplicates(), 0, "{like}");
    }
}

/// Followers of each scope at each API process, which stay there while it is restarted.
async fn late_followers(fixture: &RealtimeFixture) -> Vec<LateFollower> {
    let fleet = &fixture.fleet;
    let mut followers = Vec::new();
    for api in 0..2 {
        for (feed, like) in [
            (Feed::Wait(format!("any@{DOMAIN}")), format!("any@{DOMAIN}")),
            (Feed::WaitOwned("desk@".to_owned()), format!("desk@{DOMAIN}")),
        ] {
            let token = fleet.token(&fleet.tenant, TokenKind::Live).await;
            let follower = fleet.follow(api, &token, feed);
            follower.ready().await;
            followers.push(LateFollower { follower, like });
        }
    }
    followers
}

/// Most mails between two faults.
const MAILS: usize = 120;

/// Length of a pause: longer than any timeout towards Redis.
const PAUSE: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, Copy)]
enum RandomFault {
    RedisRestart,
    RedisPause,
    RedisFlush,
    LostSubscriptions,
    LostPublishes,
    BrokenRedisConnections,
    PostgresRestart(StopMode),
    Kill(Role, usize),
    Terminate(Role, usize),
    Pause(Role, usize),
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: all faults in random order"]
#[expect(clippy::print_stdout, reason = "seed and faults explain a failure")]
async fn delivers_once_under_faults_in_random_order() {
    let seed: u64 = rand::rng().random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let faults = shuffled_faults(&mut random);

    let (postgres, mut fixture) = with_own_postgres().await;
    let senders = Senders::start(&fixture.load());
    for fault in faults {
        println!("{fault:?}");
        inject(fault, &mut fixture, &postgres, &senders).await;
        // Does not wait for a recovery: the next fault may come before it.
        senders.wait_for_accepted(random.random_range(1..MAILS)).await;
    }
    redis_is_connected(&fixture.fleet).await;
    let accepted = senders.stop().await;
    fixture.assert_delivered(&accepted).await;
}

fn shuffled_faults(random: &mut StdRng) -> Vec<RandomFault> {
    let mut faults = vec![
        RandomFault::RedisRestart,
        RandomFault::RedisPause,
        RandomFault::RedisFlush,
        RandomFault::LostSubscriptions,
        RandomFault::LostPublishes,
        RandomFault::BrokenRedisConnections,
        RandomFault::PostgresRestart(StopMode::Immediate),
        RandomFault::PostgresRestart(StopMode::Fast),
    ];
    for role in [Role::Api, Role::Ingest] {
        for index in [0, 1] {
            faults.push(RandomFault::Kill(role, index));
        }
        faults.push(RandomFault::Terminate(role, random.random_range(0..2)));
        faults.push(RandomFault::Pause(role, random.random_range(0..2)));
    }
    faults.shuffle(random);
    faults
}

async fn inject(
    fault: RandomFault,
    fixture: &mut RealtimeFixture,
    postgres: &DedicatedPostgres,
    senders: &Senders,
) {
    match fault {
        RandomFault::RedisRestart => {
            fixture.redis.stop();
            senders.wait_for_accepted(MAILS).await;
            fixture.redis.start();
        }
        RandomFault::RedisPause => {
            fixture.redis.pause();
            sleep(PAUSE).await;
            fixture.redis.resume();
        }
        RandomFault::RedisFlush => fixture.redis.flush(),
        RandomFault::LostSubscriptions => fixture.proxy.drop_subscriptions(),
        RandomFault::LostPublishes => {
            fixture.proxy.drop_publishes(2, 0);
            senders.wait_for_accepted(MAILS).await;
            fixture.proxy.drop_no_publishes();
        }
        RandomFault::BrokenRedisConnections => {
            fixture.proxy.cut();
            fixture.proxy.restore();
        }
        RandomFault::PostgresRestart(stop) => postgres.restart(stop).await,
        RandomFault::Kill(role, index) => {
            pod(fixture, role, index).kill().await;
            restart(fixture, role, index, senders).await;
        }
        RandomFault::Terminate(role, index) => {
            let ended = pod(fixture, role, index).terminate().await;
            assert!(ended.status.success(), "{ended:?}");
            restart(fixture, role, index, senders).await;
        }
        RandomFault::Pause(role, index) => {
            pod(fixture, role, index).signal(Signal::SIGSTOP);
            sleep(PAUSE).await;
            pod(fixture, role, index).signal(Signal::SIGCONT);
        }
    }
}

/// Restarts a process that has ended; meanwhile its subscribers are at the other one.
async fn restart(fixture: &RealtimeFixture, role: Role, index: usize, senders: &Senders) {
    if role == Role::Api {
        fixture.move_subscribers(index, 1 - index);
    }
    senders.wait_for_accepted(MAILS).await;
    pod(fixture, role, index).restart().await;
    if role == Role::Api {
        fixture.move_subscribers(index, index);
    }
}

fn pod(fixture: &RealtimeFixture, role: Role, index: usize) -> &RoleProcess {
    match role {
        Role::Api => fixture.fleet.api(index),
        _ => fixture.fleet.ingest(index),
    }
}
