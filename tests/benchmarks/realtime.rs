//! `./tests/bench realtime`: what idle waiters cost, how long a mail takes to one of thousands who
//! wait, and how they all come back at once. The real program runs over a real Postgres; waiters
//! and senders are one thread of this process, on the same machine.

mod client;
pub mod crowd;
pub mod flow;
mod latency;
pub mod ledger;
mod memory;
mod peer;
mod platform;
mod storm;

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::process;
use crate::smtp::{machine, work_directory};
use client::Way;
use crowd::Generator;
use ledger::Ledger;
use peer::Peer;
use platform::{Platform, Redis};

/// Waiters that come a second before a measurement: few enough that they are no storm.
const GATHER_A_SECOND: usize = 2_500;

/// What `./tests/bench realtime` can be told. Without `--memory`, `--latency` and `--storm` it does
/// all three.
#[derive(Debug, Args)]
pub struct Realtime {
    /// Memory and processor time of idle waiters
    #[arg(long)]
    memory: bool,
    /// Time from the sender to the waiter
    #[arg(long)]
    latency: bool,
    /// A kill of the process, and everybody comes back
    #[arg(long)]
    storm: bool,
    /// `api` and `ingest` as two processes with a Redis between them; then also without it
    #[arg(long)]
    redis: bool,
    /// Waiters
    #[arg(long, default_value_t = 10_000)]
    waiters: u32,
    /// Kinds of waiters, in equal parts
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Kind::WAITING)]
    kinds: Vec<Kind>,
    /// Mails a second
    #[arg(long, default_value_t = 1_000)]
    rate: u32,
    /// Seconds of mails
    #[arg(long, default_value_t = 30)]
    seconds: u32,
    /// Seconds at rest
    #[arg(long, default_value_t = 20)]
    rest_seconds: u64,
    /// Directory for data, on a disk
    #[arg(long, default_value = "/var/tmp")]
    work_dir: PathBuf,
    /// Path of tempmail; by default the one beside this program
    #[arg(long)]
    tempmail: Option<PathBuf>,
    /// redis-server
    #[arg(long, env = "REDIS_SERVER", default_value = "redis-server")]
    redis_server: PathBuf,
    /// Centrifugo; left out without a path
    #[arg(long, env = "CENTRIFUGO")]
    centrifugo: Option<PathBuf>,
    /// Mercure; left out without a path
    #[arg(long, env = "MERCURE")]
    mercure: Option<PathBuf>,
}

/// How one waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// A connection that asks nothing.
    #[value(skip)]
    Kept,
    /// `/v1/inbox`.
    LongPoll,
    /// `/v1/sse/addr`.
    #[value(name = "sse")]
    Stream,
    /// `/api/ws`.
    #[value(name = "websocket")]
    WebSocket,
}

impl Kind {
    const WAITING: [Self; 3] = [Self::LongPoll, Self::Stream, Self::WebSocket];

    fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept connection",
            Self::LongPoll => "long-poll",
            Self::Stream => "SSE",
            Self::WebSocket => "WebSocket",
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let value = self.to_possible_value();
        f.write_str(value.as_ref().map_or("kept", |value| value.get_name()))
    }
}

impl Realtime {
    /// Runs what was asked for and prints its tables.
    ///
    /// # Errors
    /// A server does not start, or refuses what it should take.
    pub async fn run(self) -> anyhow::Result<()> {
        process::open_many_files()?;
        let directory = work_directory(&self.work_dir)?;
        println!("{}", machine(directory.path())?);
        let program = process::program_of(self.tempmail.as_deref())?;
        for (peer, variable) in [(&self.centrifugo, "CENTRIFUGO"), (&self.mercure, "MERCURE")] {
            if peer.is_none() {
                println!("{variable} names no program: left out");
            }
        }
        let generator = Generator::start()?;
        let platform = Platform::new(&program, directory.path(), self.waiters + memory::WARM_UP).await?;
        let all = !(self.memory || self.latency || self.storm);
        if self.memory || all {
            memory::run(&self, &platform, &generator).await?;
        }
        if self.latency || all {
            latency::run(&self, &platform, &generator).await?;
        }
        if self.storm || all {
            storm::run(&self, &platform, &generator).await?;
        }
        platform.cluster.stop().await;
        Ok(())
    }

    /// The kind of a waiter.
    fn kind_of(&self, waiter: u32) -> Kind {
        self.kinds[waiter as usize % self.kinds.len()]
    }

    /// How everybody waits, each at an address that `label` makes fresh.
    fn ways<'a>(&'a self, platform: &'a Platform, label: &'a str) -> impl Iterator<Item = Way> + 'a {
        (0..self.waiters).map(move |waiter| platform.way(self.kind_of(waiter), waiter, label))
    }

    /// Where everybody waits.
    fn addresses(&self, label: &str) -> Vec<String> {
        (0..self.waiters).map(|waiter| Platform::address(self.kind_of(waiter), waiter, label)).collect()
    }

    /// `mails` mails from number `first` on, to waiters at random.
    fn ledger(&self, first: usize, mails: u32) -> Arc<Ledger> {
        let mut random = StdRng::seed_from_u64(first as u64);
        Arc::new(Ledger::new(first, (0..mails).map(|_| random.random_range(0..self.waiters))))
    }

    fn peers(&self) -> Vec<Peer> {
        let centrifugo = self.centrifugo.clone().map(Peer::Centrifugo);
        centrifugo.into_iter().chain(self.mercure.clone().map(Peer::Mercure)).collect()
    }

    async fn redis(&self, platform: &Platform) -> anyhow::Result<Option<Redis>> {
        if !self.redis {
            return Ok(None);
        }
        platform.redis(&self.redis_server).await.map(Some)
    }
}
