//! `./tests/bench webhooks`: how many deliveries a second there can be, how long a mail takes to its
//! receiver, also beside dead receivers, and what idle webhooks cost. The real program runs as
//! `ingest` and `worker` with Redis between them over a real Postgres. Receivers are one thread of
//! this process and senders another, on the same machine.

mod drain;
mod fairness;
mod idle;
mod receivers;
mod setup;
mod steady;
mod usage;

use std::path::PathBuf;

use clap::Args;

use crate::environment;
use crate::environment::{describe_machine, work_directory};
use crate::realtime::pool::LoadThread;
use crate::stack::BenchPostgres;
use receivers::Receivers;
use setup::WebhookBench;

/// `./tests/bench webhooks` options. Without `--drain`, `--steady`, `--fairness` and
/// `--idle` it does all four.
#[derive(Debug, Args)]
pub struct Webhooks {
    /// A backlog of events is delivered, by many webhooks and by one
    #[arg(long)]
    drain: bool,
    /// Time from the `250` to the receiver
    #[arg(long)]
    steady: bool,
    /// The same beside receivers that never answer
    #[arg(long)]
    fairness: bool,
    /// Load on Postgres while there is nothing to deliver
    #[arg(long)]
    idle: bool,
    /// Webhooks with a receiver that answers, each of a tenant of its own
    #[arg(long, default_value_t = 50)]
    webhooks: u32,
    /// Events of the backlog
    #[arg(long, default_value_t = 20_000)]
    events: u32,
    /// Events of the backlog of one webhook
    #[arg(long, default_value_t = 5_000)]
    events_of_one: u32,
    /// Milliseconds that a receiver takes for its answer
    #[arg(long, default_value_t = 0)]
    answer_ms: u64,
    /// Mails a second to those webhooks
    #[arg(long, default_value_t = 200)]
    rate: u32,
    /// Seconds of mails
    #[arg(long, default_value_t = 30)]
    seconds: u32,
    /// Webhooks whose receivers never answer, each of a tenant of its own
    #[arg(long, default_value_t = 500)]
    dead: u32,
    /// Mails a second to the dead ones
    #[arg(long, default_value_t = 50)]
    dead_rate: u32,
    /// Idle webhooks
    #[arg(long, default_value_t = 1_000)]
    idle_webhooks: u32,
    /// Directory for data, on a disk
    #[arg(long, default_value = "/var/tmp")]
    work_dir: PathBuf,
    /// Path of tempmail; default: the one beside this program
    #[arg(long)]
    tempmail: Option<PathBuf>,
    /// redis-server
    #[arg(long, env = "REDIS_SERVER", default_value = "redis-server")]
    redis_server: PathBuf,
}

impl Webhooks {
    /// Runs what was asked for and prints its tables.
    ///
    /// # Errors
    /// A server does not start, or refuses what it should take.
    pub async fn run(self) -> anyhow::Result<()> {
        tempmail_tests::open_files::raise_limit();
        let directory = work_directory(&self.work_dir)?;
        println!("{}", describe_machine(directory.path())?);
        let program = environment::tempmail_program(self.tempmail.as_deref())?;
        let bench = WebhookBench {
            program,
            redis_server: self.redis_server.clone(),
            directory: directory.path().to_owned(),
            cluster: BenchPostgres::start(directory.path()).await?,
            load_thread: LoadThread::start()?,
            receivers: Receivers::start()?,
        };
        let all = !(self.drain || self.steady || self.fairness || self.idle);
        if self.drain || all {
            drain::run(&self, &bench).await?;
        }
        if self.steady || all {
            steady::run(&self, &bench).await?;
        }
        if self.fairness || all {
            fairness::run(&self, &bench).await?;
        }
        if self.idle || all {
            idle::run(&self, &bench).await?;
        }
        bench.cluster.stop().await;
        Ok(())
    }
}
