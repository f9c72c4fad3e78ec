//! Every fault in a random order while mail is sent.
//!
//! `LEDGER_RUNS` (1) is the number of runs, `LEDGER_SEED` the seed of the first one; each further run has the
//! next seed.

use std::env;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use tempmail_store::WEBHOOK_LEASE;
use tempmail_tests::load::senders::{LoadProfile, Senders};
use tempmail_tests::postgres::{DedicatedPostgres, StopMode};
use tempmail_tests::receiver::Reaction;
use tempmail_tests::{Fleet, RedisProxy, RedisServer};
use tokio::time::sleep;

use crate::webhooks::processes::MailboxWebhook;
use crate::webhooks::processes::ledger::assert_all_delivered;

/// Tenants, each with a webhook. One worker may have claimed all of them.
const WEBHOOKS: usize = 4;

/// Requests to one webhook in flight at most.
const IN_FLIGHT_MAX: usize = 16;

/// Mails between two faults at most.
const MAILS_BETWEEN_FAULTS: usize = 60;

/// How long a worker is suspended: longer than its leases last.
const SUSPENDED_FOR: Duration = WEBHOOK_LEASE.saturating_add(Duration::from_secs(2));

/// Longest delay of a response.
const DELAY_MAX: Duration = Duration::from_millis(400);

/// Responses with a random delay; later ones are immediate.
const DELAYED_RESPONSES: usize = 5_000;

/// Which responses are a 500, of each receiver one in each range: so far apart that a webhook never fails
/// twice in a row, which would delay it for 30 s.
const FAILURES: [std::ops::Range<usize>; 2] = [20..50, 120..180];

/// The faults besides a suspended worker.
#[derive(Debug, Clone, Copy)]
enum DeliveryFault {
    RedisStops,
    RedisIsFlushed,
    RedisIsDisconnected,
    PostgresRestarts(StopMode),
    ApiIsKilled,
    IngestIsKilled(usize),
    WorkerIsKilled,
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "chaos: processes are killed and suspended at random"]
#[expect(clippy::print_stdout, reason = "a failure shows its seed")]
async fn delivers_every_accepted_mail_in_spite_of_random_faults() {
    let seed = number("LEDGER_SEED").unwrap_or_else(|| rand::rng().random_range(0..1_000_000));
    for seed in (seed..).take(usize::try_from(number("LEDGER_RUNS").unwrap_or(1)).unwrap()) {
        println!("seed {seed}");
        run(seed).await;
    }
}

/// A number from the environment.
#[expect(clippy::disallowed_methods, reason = "a setting of the test, not of tempmail")]
fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

#[expect(clippy::print_stdout, reason = "a failure shows what led to it")]
async fn run(seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let mut fixture = FaultFixture::start(&mut random).await;
    let senders = Senders::start(&fixture.load());
    let started = Instant::now();
    let interruptions = fixture.inject_faults(&mut random, &senders).await;
    senders.wait_for_accepted(MAILS_BETWEEN_FAULTS).await;
    let accepted = senders.stop().await;
    let sent_for = started.elapsed();
    let totals = assert_all_delivered(&fixture.fleet, &fixture.webhooks, &accepted).await;
    // A process that dies loses the records of everything in flight in the lanes of one worker; if Postgres
    // dies, in those of both, which share the lanes: that is no more.
    let max = interruptions * WEBHOOKS * IN_FLIGHT_MAX;
    println!(
        "{totals:?}, at most {max} duplicates; sent for {sent_for:?}, delivered after {:?}",
        started.elapsed()
    );
    assert!(totals.duplicates <= max, "{} duplicates", totals.duplicates);
}

/// The processes, and the servers that they use.
struct FaultFixture {
    webhooks: Vec<MailboxWebhook>,
    fleet: Fleet,
    proxy: RedisProxy,
    redis: RedisServer,
    postgres: DedicatedPostgres,
}

impl FaultFixture {
    async fn start(random: &mut StdRng) -> Self {
        let postgres = DedicatedPostgres::start().await;
        let redis = RedisServer::new();
        let proxy = RedisProxy::start(redis.port()).await;
        let fleet = Fleet::builder().receivers().apis(1).workers(2);
        let fleet = fleet.database(postgres.database().await).redis(&proxy.url()).start().await;
        let mut webhooks = Vec::new();
        for nth in 0..WEBHOOKS {
            let tenant = fleet.another_tenant(&format!("tenant {nth}")).await;
            let address = format!("box-{nth}@inbox.localhost");
            let webhook = MailboxWebhook::create(&fleet, &tenant, &address).await;
            webhook.receiver.react_next_with(reactions(random));
            webhooks.push(webhook);
        }
        Self { webhooks, fleet, proxy, redis, postgres }
    }

    /// Some 60 mails a second to all mailboxes.
    fn load(&self) -> LoadProfile {
        LoadProfile {
            servers: vec![self.fleet.smtp(0), self.fleet.smtp(1)],
            recipients: self.webhooks.iter().map(|webhook| webhook.address.clone()).collect(),
            connections: 6,
            interval: Some(Duration::from_millis(100)),
            mails_per_connection: None,
        }
    }

    /// Injects every fault, and returns how often a process died or was suspended that had requests in
    /// flight.
    async fn inject_faults(&mut self, random: &mut StdRng, senders: &Senders) -> usize {
        let mut faults = [
            DeliveryFault::RedisStops,
            DeliveryFault::RedisIsFlushed,
            DeliveryFault::RedisIsDisconnected,
            DeliveryFault::PostgresRestarts(StopMode::Immediate),
            DeliveryFault::PostgresRestarts(StopMode::Fast),
            DeliveryFault::PostgresRestarts(StopMode::Kill),
            DeliveryFault::ApiIsKilled,
            DeliveryFault::IngestIsKilled(0),
            DeliveryFault::IngestIsKilled(1),
            DeliveryFault::WorkerIsKilled,
            DeliveryFault::WorkerIsKilled,
            DeliveryFault::WorkerIsKilled,
        ];
        faults.shuffle(random);
        let (suspended, after) =
            (random.random_range(0..2), random.random_range(1..3 * MAILS_BETWEEN_FAULTS));
        let Self { fleet, redis, proxy, postgres, .. } = self;
        let suspend_worker = async {
            senders.wait_for_accepted(after).await;
            print_event(&format!("worker {suspended} is suspended"));
            fleet.worker(suspended).signal(Signal::SIGSTOP);
            sleep(SUSPENDED_FOR).await;
            print_event(&format!("worker {suspended} is resumed"));
            fleet.worker(suspended).signal(Signal::SIGCONT);
        };
        let inject_others = async {
            let mut interruptions = 1;
            for fault in faults {
                print_event(&format!("{fault:?}"));
                match fault {
                    DeliveryFault::RedisStops => {
                        redis.stop();
                        senders.wait_for_accepted(MAILS_BETWEEN_FAULTS).await;
                        redis.start();
                    }
                    DeliveryFault::RedisIsFlushed => redis.flush(),
                    DeliveryFault::RedisIsDisconnected => {
                        proxy.cut();
                        proxy.restore();
                    }
                    DeliveryFault::PostgresRestarts(how) => {
                        postgres.restart(how).await;
                        interruptions += 1;
                    }
                    DeliveryFault::ApiIsKilled => fleet.api(0).restart().await,
                    DeliveryFault::IngestIsKilled(index) => {
                        fleet.ingest(index).kill().await;
                        senders.wait_for_accepted(random.random_range(1..MAILS_BETWEEN_FAULTS)).await;
                        fleet.ingest(index).restart().await;
                    }
                    DeliveryFault::WorkerIsKilled => {
                        fleet.worker(1 - suspended).kill().await;
                        senders.wait_for_accepted(random.random_range(1..MAILS_BETWEEN_FAULTS)).await;
                        fleet.worker(1 - suspended).restart().await;
                        interruptions += 1;
                    }
                }
                // The next fault does not wait for the recovery from this one.
                senders.wait_for_accepted(random.random_range(1..MAILS_BETWEEN_FAULTS)).await;
            }
            interruptions
        };
        tokio::join!(inject_others, suspend_worker).0
    }
}

/// Reactions of a receiver, in turn.
fn reactions(random: &mut StdRng) -> Vec<Reaction> {
    let failures = FAILURES.map(|range| random.random_range(range));
    let mut reaction = |nth: usize| {
        let status = if failures.contains(&nth) { 500 } else { 204 };
        Reaction::DelayedStatus(DELAY_MAX.mul_f64(random.random()), status)
    };
    (0..DELAYED_RESPONSES).map(&mut reaction).collect()
}

#[expect(clippy::print_stdout, reason = "a failure shows what led to it")]
fn print_event(event: &str) {
    println!("{event}");
}
