//! `./tests/bench growth`: what stored mail costs. Two stacks run over one Postgres, one with
//! few mails and one with many, and are measured in turn, request by request and portion by
//! portion of mail, so that what else the machine does meets both. Then half of the many expire while mail flows.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Args;
use jiff::{SignedDuration, Timestamp};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::Value;
use tempmail_model::clock::Clock as _;
use tempmail_model::retention::RetentionClass;

use crate::environment::work_directory;
use crate::http::HttpClient;
use crate::load::{Connections, LoadReport, Recipients, SmtpLoad};
use crate::measure::{Latencies, Rounds, millis, print_table};
use crate::stack::{BenchPostgres, DOMAIN, Stack};

/// `./tests/bench growth` options.
#[derive(Debug, Args)]
pub struct Growth {
    /// Mails stored in the many
    #[arg(long, default_value_t = 1_000_000)]
    stored: usize,
    /// Mails stored in the few
    #[arg(long, default_value_t = 1_000)]
    few: usize,
    /// Mails an ingest measurement
    #[arg(long, default_value_t = 20_000)]
    mails: usize,
    /// Requests a reading measurement
    #[arg(long, default_value_t = 3_000)]
    reads: usize,
    /// Rounds; the median counts
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Connections at a time
    #[arg(long, default_value_t = 32)]
    connections: usize,
    /// Octets a mail
    #[arg(long, default_value_t = 3_072)]
    size: usize,
    /// Directory for data, on a disk
    #[arg(long, default_value = "/var/tmp")]
    work_dir: PathBuf,
}

/// Mails that each address got: what a read of one inbox finds.
const MAILS_AN_ADDRESS: usize = 10;
/// Steps in which the many are stored; between two of them time moves on, so that they lie in
/// as many partitions as they do where mail flows all the time.
const STEPS: usize = 10;
/// All of the steps together stay below the retention of an hour, with room for the measurement.
const STEP: SignedDuration = SignedDuration::from_mins(4);
/// Portions of an ingest measurement, in turn to few and many.
const PORTIONS: usize = 10;

/// The figures of one stack over the rounds.
#[derive(Debug, Default)]
struct GrowthFigures {
    ingest: Rounds,
    accept: [Rounds; 2],
    inbox: [Rounds; 2],
    email: [Rounds; 2],
}

/// A load and the worker's pass within it.
#[derive(Debug)]
struct ExpiryWindow {
    load: LoadReport,
    pass: Duration,
}

impl Growth {
    /// Runs all of it and prints the tables.
    ///
    /// # Errors
    /// A role does not start, refuses mail, or lost some.
    pub async fn run(self) -> anyhow::Result<()> {
        let directory = work_directory(&self.work_dir)?;
        let cluster = BenchPostgres::start(directory.path()).await?;
        let outcome = self.measure(&cluster, directory.path()).await;
        cluster.stop().await;
        outcome
    }

    async fn measure(&self, cluster: &BenchPostgres, directory: &Path) -> anyhow::Result<()> {
        println!("files in {}", directory.display());
        let many = Stack::start(&cluster.create_database("many").await?).await?;
        let started = Instant::now();
        let halves = self.fill(&many, self.stored).await?;
        println!("{} mails stored in {:.0} s", many.messages().await?, started.elapsed().as_secs_f64());
        let (mut of_few, mut of_many) = (GrowthFigures::default(), GrowthFigures::default());
        for round in 1..=self.rounds {
            let name = format!("few{round}");
            let few = Stack::start(&cluster.create_database(&name).await?).await?;
            self.fill(&few, self.few).await?;
            let mut pair = [(&few, self.few, &mut of_few), (&many, self.stored, &mut of_many)];
            self.read(&mut pair).await?;
            self.ingest(round, &mut pair).await?;
            few.stop().await?;
            cluster.drop_database(&name).await?;
            println!("round {round} of {} is done", self.rounds);
        }
        self.print(&of_few, &of_many);
        self.expire(&many, halves).await?;
        many.stop().await
    }

    /// Stores mails at ten moments, so that few and many lie in the same partitions; returns
    /// the ends of their two halves, on boundaries of partitions.
    async fn fill(&self, stack: &Stack, mails: usize) -> anyhow::Result<[Timestamp; 2]> {
        let mut halves = [stack.clock.now(); 2];
        for step in 0..STEPS {
            let load = SmtpLoad {
                mails: mails / STEPS,
                recipients: Recipients::Some(addresses(mails)),
                pipelined: true,
                ..self.load(stack, &fill_label(step))
            };
            load.run().await?;
            stack.advance_to(stack.clock.now() + STEP).await?;
            if let Some(half) = halves.get_mut(step / (STEPS / 2)) {
                *half = partition_end(stack.clock.now());
            }
            if step + 1 == STEPS / 2 {
                stack.advance_to(halves[0]).await?;
            }
        }
        Ok(halves)
    }

    /// Requests one after the other, in turn to few and many: a random inbox, and one of its
    /// mails.
    async fn read(&self, pair: &mut [(&Stack, usize, &mut GrowthFigures); 2]) -> anyhow::Result<()> {
        let mut random = StdRng::seed_from_u64(3_072);
        let mut clients =
            [HttpClient::connect(pair[0].0.http).await?, HttpClient::connect(pair[1].0.http).await?];
        let (mut inbox, mut email) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
        for at in (0..self.reads * 2).map(|request| request % 2) {
            let (stack, stored, _) = &pair[at];
            let number = random.random_range(1..=addresses(*stored));
            let label = fill_label(random.random_range(0..STEPS));
            let target = format!("/v1/inbox/{number}{label}@{DOMAIN}");
            let (body, took) = timed_get(&mut clients[at], &target, &stack.token).await?;
            inbox[at].push(took);
            let emails = body["emails"].as_array().context("no emails")?;
            ensure!(emails.len() == MAILS_AN_ADDRESS, "{} mails instead of {MAILS_AN_ADDRESS}", emails.len());
            let id = emails[random.random_range(0..emails.len())]["id"].as_str().context("no id")?;
            let (_, took) = timed_get(&mut clients[at], &format!("/v1/email/{id}"), &stack.token).await?;
            email[at].push(took);
        }
        for ((_, _, figures), (inbox, email)) in pair.iter_mut().zip(inbox.into_iter().zip(email)) {
            push_latencies(&mut figures.inbox, &Latencies::new(inbox));
            push_latencies(&mut figures.email, &Latencies::new(email));
        }
        Ok(())
    }

    /// Mail in portions, in turn to few and many.
    async fn ingest(
        &self,
        round: usize,
        pair: &mut [(&Stack, usize, &mut GrowthFigures); 2],
    ) -> anyhow::Result<()> {
        let mut reports = [Vec::new(), Vec::new()];
        for portion in 0..PORTIONS {
            for ((stack, _, _), reports) in pair.iter().zip(&mut reports) {
                let label = format!("r{round}p{portion}");
                let load = SmtpLoad { mails: self.mails / PORTIONS, ..self.load(stack, &label) };
                reports.push(load.run().await?);
            }
        }
        for ((_, _, figures), reports) in pair.iter_mut().zip(reports) {
            let report = LoadReport::sum(reports);
            figures.ingest.push(report.rate());
            push_latencies(&mut figures.accept, &report.latencies);
        }
        Ok(())
    }

    fn load(&self, stack: &Stack, label: &str) -> SmtpLoad {
        SmtpLoad {
            addr: stack.smtp,
            connections: self.connections,
            mails: self.mails,
            size: self.size,
            pipelined: false,
            recipients: Recipients::Many,
            kind: Connections::Kept,
            domain: DOMAIN.into(),
            label: label.into(),
            limit_seconds: 1_200,
        }
    }

    fn print(&self, few: &GrowthFigures, many: &GrowthFigures) {
        println!(
            "\n{} and {} stored mails, {} rounds, median (min-max)\n",
            self.few, self.stored, self.rounds
        );
        let row = |what: &str, few: &Rounds, many: &Rounds| {
            vec![what.to_owned(), few.summary(2), many.summary(2), many.ratio_to(few).summary(2)]
        };
        let rows = [
            row("ingest, msg/s", &few.ingest, &many.ingest),
            row("250, p50 ms", &few.accept[0], &many.accept[0]),
            row("250, p99 ms", &few.accept[1], &many.accept[1]),
            row("/v1/inbox, p50 ms", &few.inbox[0], &many.inbox[0]),
            row("/v1/inbox, p99 ms", &few.inbox[1], &many.inbox[1]),
            row("/v1/email, p50 ms", &few.email[0], &many.email[0]),
            row("/v1/email, p99 ms", &few.email[1], &many.email[1]),
        ];
        let (few, many) = (format!("{} stored", self.few), format!("{} stored", self.stored));
        print_table(&["figure", &few, &many, "ratio"], &rows);
    }

    /// Expires one half, then the other, each while mail flows, between two quiet measurements.
    async fn expire(&self, many: &Stack, halves: [Timestamp; 2]) -> anyhow::Result<()> {
        let mut rows = Vec::new();
        let mut before = self.under_load(many, "quiet0").await?;
        for (number, end) in halves.into_iter().enumerate() {
            let due = end + RetentionClass::FREE.duration();
            many.advance_to(due).await?;
            let stored = many.messages().await? + i64::try_from(self.window())?;
            let during = self.under_load(many, &format!("expiry{number}")).await?;
            let expired = stored - many.messages().await?;
            let after = self.under_load(many, &format!("quiet{}", number + 1)).await?;
            let quiet = f64::midpoint(before.load.rate(), after.load.rate());
            rows.push(vec![
                expired.to_string(),
                format!("{:.0} ms", millis(during.pass)),
                format!("{:.0}, {:.0}", before.load.rate(), after.load.rate()),
                format!("{:.0}", during.load.rate()),
                format!("{:.2}", during.load.rate() / quiet),
                after.load.latencies.to_string(),
                during.load.latencies.to_string(),
            ]);
            before = after;
        }
        println!("\nexpiry while mail flows, {} mails a measurement\n", self.window());
        let head = [
            "mails expired",
            "worker's pass",
            "msg/s before, after",
            "msg/s during",
            "ratio",
            "250 after",
            "250 during",
        ];
        print_table(&head, &rows);
        Ok(())
    }

    /// Mails of one measurement of the expiry: some seconds of load.
    fn window(&self) -> usize {
        self.mails * 3
    }

    /// A load, and after a tenth of it one pass of the worker: in a quiet measurement it finds nothing to expire.
    async fn under_load(&self, stack: &Stack, label: &str) -> anyhow::Result<ExpiryWindow> {
        let lead = self.window() / 10;
        let [first, rest] = [("lead", lead), ("rest", self.window() - lead)]
            .map(|(part, mails)| SmtpLoad { mails, ..self.load(stack, &format!("{label}{part}")) });
        let first = first.run().await?;
        let pass = async {
            let started = Instant::now();
            stack.run_worker_once().await?;
            anyhow::Ok(started.elapsed())
        };
        let (rest, pass) = tokio::try_join!(rest.run(), pass)?;
        Ok(ExpiryWindow { load: LoadReport::sum([first, rest]), pass })
    }
}

/// Addresses that get mail in one of the steps that store so many in all.
fn addresses(mails: usize) -> usize {
    (mails / STEPS / MAILS_AN_ADDRESS).max(1)
}

/// What the addresses of a step end with.
fn fill_label(step: usize) -> String {
    format!("s{step}fill")
}

/// Where the partition of a moment ends.
fn partition_end(now: Timestamp) -> Timestamp {
    let width = RetentionClass::FREE.partition_width().as_secs();
    now + SignedDuration::from_secs(width - now.as_second().rem_euclid(width))
}

async fn timed_get(client: &mut HttpClient, target: &str, token: &str) -> anyhow::Result<(Value, Duration)> {
    let started = Instant::now();
    let answer = client.get(target, token).await?;
    let took = started.elapsed();
    ensure!(answer.status == 200, "{target} answered {}", answer.status);
    Ok((serde_json::from_slice(&answer.body)?, took))
}

fn push_latencies(rounds: &mut [Rounds; 2], latencies: &Latencies) {
    rounds[0].push(millis(latencies.p50()));
    rounds[1].push(millis(latencies.p99()));
}
