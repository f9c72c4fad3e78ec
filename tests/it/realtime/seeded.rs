//! Everything that can fail, in an order that the seed decides, while mail flows: whoever listens
//! meets every mail once.

use std::time::Duration;

use nix::sys::signal::Signal;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use tempmail_tests::Fleet;
use tempmail_tests::fleet::Role;
use tempmail_tests::postgres::{DedicatedPostgres, StopMode};
use tokio::time::sleep;

use super::senders::Senders;
use super::stage::{Stage, redis_is_well};

/// Mails between two faults at most.
const SOME: usize = 120;

/// Longest that something stands still: longer than anything waits for Redis.
const STILL: Duration = Duration::from_millis(3_000);

/// What happens.
#[derive(Debug, Clone, Copy)]
enum Fault {
    RedisStops,
    RedisStandsStill,
    RedisForgets,
    SubscriptionsGo,
    PublishesAreLost,
    ConnectionsToRedisBreak,
    PostgresRestarts(StopMode),
    Killed(Role, usize),
    Terminated(Role, usize),
    StandsStill(Role, usize),
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::print_stdout, reason = "where it fails this tells what led to it")]
async fn faults_in_any_order() {
    let seed: u64 = rand::rng().random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let mut faults = vec![
        Fault::RedisStops,
        Fault::RedisStandsStill,
        Fault::RedisForgets,
        Fault::SubscriptionsGo,
        Fault::PublishesAreLost,
        Fault::ConnectionsToRedisBreak,
        Fault::PostgresRestarts(StopMode::Immediate),
        Fault::PostgresRestarts(StopMode::Fast),
    ];
    for role in [Role::Api, Role::Ingest] {
        for index in [0, 1] {
            faults.push(Fault::Killed(role, index));
        }
        faults.push(Fault::Terminated(role, random.random_range(0..2)));
        faults.push(Fault::StandsStill(role, random.random_range(0..2)));
    }
    faults.shuffle(&mut random);

    let postgres = DedicatedPostgres::start().await;
    let mut stage = Stage::set_with(Fleet::builder().database(postgres.database().await)).await;
    let senders = Senders::start(&stage.flow());
    for fault in faults {
        println!("{fault:?}");
        happens(fault, &mut stage, &postgres, &senders).await;
        // It is not waited for what heals by itself: the next fault comes on top.
        senders.go_on_for(random.random_range(1..SOME)).await;
    }
    redis_is_well(&stage.fleet).await;
    let accepted = senders.stop().await;
    stage.all_is_met(&accepted).await;
}

async fn happens(fault: Fault, stage: &mut Stage, postgres: &DedicatedPostgres, senders: &Senders) {
    match fault {
        Fault::RedisStops => {
            stage.redis.stop();
            senders.go_on_for(SOME).await;
            stage.redis.start();
        }
        Fault::RedisStandsStill => {
            stage.redis.pause();
            sleep(STILL).await;
            stage.redis.resume();
        }
        Fault::RedisForgets => stage.redis.flush(),
        Fault::SubscriptionsGo => stage.proxy.drop_subscriptions(),
        Fault::PublishesAreLost => {
            stage.proxy.drop_publishes(2, 0);
            senders.go_on_for(SOME).await;
            stage.proxy.drop_no_publishes();
        }
        Fault::ConnectionsToRedisBreak => {
            stage.proxy.cut();
            stage.proxy.restore();
        }
        Fault::PostgresRestarts(how) => postgres.restart(how).await,
        Fault::Killed(role, index) => {
            pod(stage, role, index).kill().await;
            comes_back(stage, role, index, senders).await;
        }
        Fault::Terminated(role, index) => {
            let ended = pod(stage, role, index).terminate().await;
            assert!(ended.status.success(), "{ended:?}");
            comes_back(stage, role, index, senders).await;
        }
        Fault::StandsStill(role, index) => {
            pod(stage, role, index).signal(Signal::SIGSTOP);
            sleep(STILL).await;
            pod(stage, role, index).signal(Signal::SIGCONT);
        }
    }
}

/// Starts a process again that has ended; its clients were at the other one.
async fn comes_back(stage: &Stage, role: Role, index: usize, senders: &Senders) {
    if role == Role::Api {
        stage.move_listeners(index, 1 - index);
    }
    senders.go_on_for(SOME).await;
    pod(stage, role, index).restart().await;
    if role == Role::Api {
        stage.move_listeners(index, index);
    }
}

fn pod(stage: &Stage, role: Role, index: usize) -> &tempmail_tests::fleet::RoleProcess {
    match role {
        Role::Api => stage.fleet.api(index),
        _ => stage.fleet.ingest(index),
    }
}
