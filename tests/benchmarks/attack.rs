//! `./tests/bench attack`: whether attacks disturb a well-behaved client of another tenant. It sends, waits and reads
//! alone, then beside each attack, and then beside a spinner that burns the processor time that the attacker used, when it
//! did: what an attack costs beyond that is the platform's. Each attack has processes and a database of its own.

mod disk;
mod platform;
mod spinner;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Args;
use tempmail_tests::attack::{
    AttackKind, AttackReport, AttackTarget, Placement, RunningAttack, Victim, VictimReport, silent_dns,
};
use tokio::time::Instant;

use crate::environment::{self, describe_machine, work_directory};
use crate::measure::{Latencies, millis, print_table};
use crate::stack::BenchPostgres;
use disk::Disk;
use platform::Platform;
use spinner::Spinner;

/// Time in which connections and plans are made that the measurements share.
const WARM_UP: Duration = Duration::from_secs(3);
/// Mailboxes of the victim, each of which gets five mails a second.
const MAILBOXES: usize = 4;
/// What a victim waits for.
const STEPS: [&str; 5] =
    ["send to 250", "250 to long-poll", "250 to event", "read with a token", "read with a JWT"];

/// `./tests/bench attack` options.
#[derive(Debug, Args)]
pub struct AttackArgs {
    /// Path of tempmail; default: the one beside this program
    #[arg(long)]
    program: Option<PathBuf>,
    /// Only these attacks, such as `parked-bdat`; a wrong name lists them
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Only attackers at another client address, tenant and recipient than the victim's
    #[arg(long)]
    apart: bool,
    /// Seconds a measurement; three for each row
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Idle connections to each of the five ports of `idle-connections`
    #[arg(long, default_value_t = 5_000)]
    idle_connections: usize,
    /// Directory for data, on a disk
    #[arg(long, default_value = "/var/tmp")]
    work_dir: PathBuf,
}

/// The victim beside one attack.
#[derive(Debug)]
struct Measurement {
    attack: AttackKind,
    placement: Placement,
    did: AttackReport,
    alone: VictimReport,
    attacked: VictimReport,
    spun: VictimReport,
    /// Peak resident memory of `api` and of `ingest`, MiB.
    memory: (u64, u64),
}

impl AttackArgs {
    /// Runs the attacks and prints the table.
    ///
    /// # Errors
    /// An attack is unknown, or a server does not start.
    pub async fn run(self) -> anyhow::Result<()> {
        let attacks = self.attacks()?;
        let program = environment::tempmail_program(self.program.as_deref())?;
        let program = fs::canonicalize(&program).with_context(|| program.display().to_string())?;
        let directory = work_directory(&self.work_dir)?;
        println!("{}\n{}", program.display(), describe_machine(directory.path())?);
        let disk = Disk::new(directory.path()).await?;
        let cluster = BenchPostgres::start(directory.path()).await?;
        let mut measurements = Vec::new();
        for attack in attacks {
            for &placement in attack.placements() {
                if self.apart && placement != Placement::Apart {
                    continue;
                }
                cluster.fill_log().await?;
                let dns = silent_dns().await;
                let platform = Platform::start(&program, directory.path(), &cluster, &dns).await?;
                let measured = self.measure(&platform, &disk, attack, placement).await;
                platform.stop(&cluster).await?;
                let measured = measured?;
                println!("{measured}");
                measurements.push(measured);
            }
        }
        cluster.stop().await;
        self.print(&measurements);
        Ok(())
    }

    fn attacks(&self) -> anyhow::Result<Vec<AttackKind>> {
        let names = AttackKind::ALL.map(AttackKind::name);
        for name in &self.only {
            ensure!(names.contains(&name.as_str()), "{name} is none of {}", names.join(", "));
        }
        let is_wanted = |attack: &AttackKind| self.only.iter().any(|name| name == attack.name());
        Ok(AttackKind::ALL.into_iter().filter(|attack| self.only.is_empty() || is_wanted(attack)).collect())
    }

    async fn measure(
        &self,
        platform: &Platform,
        disk: &Disk,
        attack: AttackKind,
        placement: Placement,
    ) -> anyhow::Result<Measurement> {
        let (listeners, pool) = (platform.listeners.clone(), platform.pool.clone());
        let target = AttackTarget::new(listeners, pool, placement, self.idle_connections, MAILBOXES).await;
        let victim = Victim::new(&target).await;
        let prepared = attack.prepare(&target).await;
        victim.run(Instant::now() + WARM_UP).await;
        platform.settle(disk).await?;
        let until = || Instant::now() + Duration::from_secs(self.seconds);

        let alone = victim.run(until()).await;
        platform.settle(disk).await?;
        let running = RunningAttack::start(prepared, &target);
        let attacked = victim.run(until()).await;
        let did = running.stop().await;
        let memory = platform.peak_memory()?;
        platform.settle(disk).await?;
        let spinners: Vec<Spinner> = did.cpu.iter().cloned().map(Spinner::start).collect();
        let spun = victim.run(until()).await;
        for spinner in spinners {
            spinner.wait().await?;
        }
        Ok(Measurement { attack, placement, did, alone, attacked, spun, memory })
    }

    fn print(&self, measurements: &[Measurement]) {
        println!(
            "\nA client that sends {} mails a second for {} s, waits for and reads each: p50 / p99 in ms, alone, \
             beside the attack, and beside a spinner that takes the attacker's processor time; the ratio of \
             attack to spinner; and what was refused or missing beside the attack\n",
            5 * MAILBOXES,
            self.seconds
        );
        let head =
            ["attack", "attacker", "step", "alone", "attack", "spinner", "p50", "p99", "refused", "missing"];
        let rows: Vec<Vec<String>> = measurements.iter().flat_map(Measurement::rows).collect();
        print_table(&head, &rows);
    }
}

impl Measurement {
    /// A row for each step.
    fn rows(&self) -> Vec<Vec<String>> {
        let (alone, attacked, spun) = (steps(&self.alone), steps(&self.attacked), steps(&self.spun));
        let row = |number: usize| {
            let ratio = |of: fn(&Latencies) -> Duration| {
                format!("{:.2}", of(&attacked[number]).div_duration_f64(of(&spun[number])))
            };
            vec![
                self.attack.name().to_owned(),
                self.placement.to_string(),
                STEPS[number].to_owned(),
                both(&alone[number]),
                both(&attacked[number]),
                both(&spun[number]),
                ratio(Latencies::p50),
                ratio(Latencies::p99),
                self.attacked.refusals.len().to_string(),
                (self.attacked.mails - self.attacked.reads.len()).to_string(),
            ]
        };
        (0..STEPS.len()).map(row).collect()
    }
}

impl std::fmt::Display for Measurement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (name, (api, ingest)) = (self.attack.name(), self.memory);
        write!(
            f,
            "{name} ({}): {}; peak of api {api} MiB, of ingest {ingest} MiB",
            self.placement, self.did
        )?;
        for refusal in
            self.alone.refusals.iter().chain(&self.attacked.refusals).chain(&self.spun.refusals).take(5)
        {
            write!(f, "\n  {refusal}")?;
        }
        Ok(())
    }
}

/// The times of each step.
fn steps(report: &VictimReport) -> [Latencies; 5] {
    let VictimReport { sends, polls, events, reads, mailbox_reads, .. } = report;
    [sends, polls, events, reads, mailbox_reads].map(|times| Latencies::new(times.clone()))
}

fn both(times: &Latencies) -> String {
    format!("{:.1} / {:.1}", millis(times.p50()), millis(times.p99()))
}
