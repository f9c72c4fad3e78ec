//! Everything that can fail, in an order that the seed decides, while mail flows.
//!
//! `LEDGER_RUNS` (1) says how often, `LEDGER_SEED` with which seed the first time; each further run
//! has the next one.

use std::env;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use tempmail_store::WEBHOOK_LEASE;
use tempmail_tests::postgres::{DedicatedPostgres, StopMode};
use tempmail_tests::receiver::Reaction;
use tempmail_tests::{Fleet, RedisProxy, RedisServer};
use tokio::time::sleep;

use super::{Line, book};
use crate::realtime::senders::{Flow, Senders};

/// Tenants, each with a webhook. A worker may have all of them in hand.
const LINES: usize = 4;

/// Requests to one webhook in flight at most.
const IN_FLIGHT: usize = 16;

/// Mails between two faults at most.
const SOME: usize = 60;

/// How long a worker stands still: longer than it has a webhook in hand.
const STILL: Duration = WEBHOOK_LEASE.saturating_add(Duration::from_secs(2));

/// Longest that a receiver takes for its answer.
const LATENCY: Duration = Duration::from_millis(400);

/// Answers that are decided in advance; what comes after them is answered at once.
const ANSWERS: usize = 5_000;

/// Which answers are a 500, of each receiver one in each range: so far apart that never two of them
/// come in a row, which would keep the webhook waiting for 30 s.
const FAILURES: [std::ops::Range<usize>; 2] = [20..50, 120..180];

/// What happens, beside the worker that stands still.
#[derive(Debug, Clone, Copy)]
enum Fault {
    RedisStops,
    RedisForgets,
    ConnectionsToRedisBreak,
    PostgresRestarts(StopMode),
    ApiIsKilled,
    IngestIsKilled(usize),
    WorkerIsKilled,
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::print_stdout, reason = "where it fails this tells what led to it")]
async fn no_accepted_mail_is_without_a_receipt() {
    let seed = number("LEDGER_SEED").unwrap_or_else(|| rand::rng().random_range(0..1_000_000));
    for seed in (seed..).take(usize::try_from(number("LEDGER_RUNS").unwrap_or(1)).unwrap()) {
        println!("seed {seed}");
        run(seed).await;
    }
}

/// A number from the environment.
#[expect(clippy::disallowed_methods, reason = "it is for whoever runs the test, and no setting of tempmail")]
fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

#[expect(clippy::print_stdout, reason = "where it fails this tells what led to it")]
async fn run(seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let mut stage = Stage::set(&mut random).await;
    let senders = Senders::start(&stage.flow());
    let begun = Instant::now();
    let interruptions = stage.faults(&mut random, &senders).await;
    senders.go_on_for(SOME).await;
    let accepted = senders.stop().await;
    let stopped = begun.elapsed();
    let sums = book::balance(&stage.fleet, &stage.lines, &accepted).await;
    // What dies takes with it the receipts of all that was in flight in the lanes of one worker,
    // or of Postgres in those of both: they share the lanes, so that is no more.
    let most = interruptions * LINES * IN_FLIGHT;
    println!("{sums:?}, at most {most} duplicates; mail for {stopped:?}, told after {:?}", begun.elapsed());
    assert!(sums.duplicates <= most, "{} duplicates", sums.duplicates);
}

/// The processes and what they stand on.
struct Stage {
    lines: Vec<Line>,
    fleet: Fleet,
    proxy: RedisProxy,
    redis: RedisServer,
    postgres: DedicatedPostgres,
}

impl Stage {
    async fn set(random: &mut StdRng) -> Self {
        let postgres = DedicatedPostgres::start().await;
        let redis = RedisServer::new();
        let proxy = RedisProxy::start(redis.port()).await;
        let fleet = Fleet::builder().receivers().apis(1).workers(2);
        let fleet = fleet.database(postgres.database().await).redis(&proxy.url()).start().await;
        let mut lines = Vec::new();
        for nth in 0..LINES {
            let tenant = fleet.another_tenant(&format!("tenant {nth}")).await;
            let line = Line::of(&fleet, &tenant, &format!("box-{nth}@inbox.localhost")).await;
            line.receiver.react_next_with(answers(random));
            lines.push(line);
        }
        Self { lines, fleet, proxy, redis, postgres }
    }

    /// Mail to all lines: some 60 a second.
    fn flow(&self) -> Flow {
        Flow {
            servers: vec![self.fleet.smtp(0), self.fleet.smtp(1)],
            recipients: self.lines.iter().map(|line| line.address.clone()).collect(),
            connections: 6,
            pace: Some(Duration::from_millis(100)),
            each: None,
        }
    }

    /// Lets everything happen, and gives how often something died or stood still that has
    /// deliveries in hand.
    async fn faults(&mut self, random: &mut StdRng, senders: &Senders) -> usize {
        let mut faults = [
            Fault::RedisStops,
            Fault::RedisForgets,
            Fault::ConnectionsToRedisBreak,
            Fault::PostgresRestarts(StopMode::Immediate),
            Fault::PostgresRestarts(StopMode::Fast),
            Fault::PostgresRestarts(StopMode::Kill),
            Fault::ApiIsKilled,
            Fault::IngestIsKilled(0),
            Fault::IngestIsKilled(1),
            Fault::WorkerIsKilled,
            Fault::WorkerIsKilled,
            Fault::WorkerIsKilled,
        ];
        faults.shuffle(random);
        let (still, after) = (random.random_range(0..2), random.random_range(1..3 * SOME));
        let Self { fleet, redis, proxy, postgres, .. } = self;
        let stands_still = async {
            senders.go_on_for(after).await;
            say(&format!("worker {still} stands still"));
            fleet.worker(still).signal(Signal::SIGSTOP);
            sleep(STILL).await;
            say(&format!("worker {still} goes on"));
            fleet.worker(still).signal(Signal::SIGCONT);
        };
        let one_by_one = async {
            let mut interruptions = 1;
            for fault in faults {
                say(&format!("{fault:?}"));
                match fault {
                    Fault::RedisStops => {
                        redis.stop();
                        senders.go_on_for(SOME).await;
                        redis.start();
                    }
                    Fault::RedisForgets => redis.flush(),
                    Fault::ConnectionsToRedisBreak => {
                        proxy.cut();
                        proxy.restore();
                    }
                    Fault::PostgresRestarts(how) => {
                        postgres.restart(how).await;
                        interruptions += 1;
                    }
                    Fault::ApiIsKilled => fleet.api(0).restart().await,
                    Fault::IngestIsKilled(index) => {
                        fleet.ingest(index).kill().await;
                        senders.go_on_for(random.random_range(1..SOME)).await;
                        fleet.ingest(index).restart().await;
                    }
                    Fault::WorkerIsKilled => {
                        fleet.worker(1 - still).kill().await;
                        senders.go_on_for(random.random_range(1..SOME)).await;
                        fleet.worker(1 - still).restart().await;
                        interruptions += 1;
                    }
                }
                // It is not waited for what heals by itself: the next fault comes on top.
                senders.go_on_for(random.random_range(1..SOME)).await;
            }
            interruptions
        };
        tokio::join!(one_by_one, stands_still).0
    }
}

/// What a receiver answers, in turn.
fn answers(random: &mut StdRng) -> Vec<Reaction> {
    let failures = FAILURES.map(|range| random.random_range(range));
    let mut answer = |nth: usize| {
        let status = if failures.contains(&nth) { 500 } else { 204 };
        Reaction::DelayedStatus(LATENCY.mul_f64(random.random()), status)
    };
    (0..ANSWERS).map(&mut answer).collect()
}

#[expect(clippy::print_stdout, reason = "where it fails this tells what led to it")]
fn say(what: &str) {
    println!("{what}");
}
