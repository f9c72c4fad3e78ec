//! Every kind of fault, in an order decided by a seed, while mail flows.

use std::time::Duration;

use nix::sys::signal::Signal;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use tempmail_tests::fleet::{Role, RoleProcess};
use tempmail_tests::load::senders::Senders;
use tempmail_tests::postgres::{DedicatedPostgres, StopMode};
use tokio::time::sleep;

use super::super::faults::with_own_postgres;
use super::super::fixture::{RealtimeFixture, redis_is_connected};

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
