//! `./tests/bench realtime`: what idle subscribers cost, how long a mail takes to one of thousands who
//! wait, and how they all come back at once. The real program runs over a real Postgres; subscribers
//! and senders are one thread of this process, on the same machine.

pub mod delivery_log;
pub mod flow;
mod latency;
mod memory;
mod peer;
mod platform;
pub mod pool;
mod storm;
mod subscriber;

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::environment;
use crate::environment::{describe_machine, work_directory};
use delivery_log::DeliveryLog;
use peer::Peer;
use platform::{Platform, Redis};
use pool::LoadThread;
use subscriber::Subscription;

/// Subscribers that come a second before a measurement: few enough that they are no storm.
const CONNECTS_A_SECOND: usize = 2_500;

/// `./tests/bench realtime` options. Without `--memory`, `--latency` and `--storm` it does
/// all three.
#[derive(Debug, Args)]
pub struct Realtime {
    /// Memory and processor time of idle subscribers
    #[arg(long)]
    memory: bool,
    /// Time from the sender to the subscriber
    #[arg(long)]
    latency: bool,
    /// Kill the process and wait until all subscribers have reconnected
    #[arg(long)]
    storm: bool,
    /// `api` and `ingest` as two processes with a Redis between them; then also without it
    #[arg(long)]
    redis: bool,
    /// Subscribers
    #[arg(long, default_value_t = 10_000)]
    subscribers: u32,
    /// Kinds of subscribers, in equal parts
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = SubscriberKind::WAITING)]
    kinds: Vec<SubscriberKind>,
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
    /// Path of tempmail; default: the one beside this program
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

/// A kind of subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SubscriberKind {
    /// A connection without a request.
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

impl SubscriberKind {
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

impl std::fmt::Display for SubscriberKind {
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
        tempmail_tests::open_files::raise_limit();
        let directory = work_directory(&self.work_dir)?;
        println!("{}", describe_machine(directory.path())?);
        let program = environment::tempmail_program(self.tempmail.as_deref())?;
        for (peer, variable) in [(&self.centrifugo, "CENTRIFUGO"), (&self.mercure, "MERCURE")] {
            if peer.is_none() {
                println!("{variable} names no program: left out");
            }
        }
        let load_thread = LoadThread::start()?;
        let platform = Platform::new(&program, directory.path(), self.subscribers + memory::WARM_UP).await?;
        let all = !(self.memory || self.latency || self.storm);
        if self.memory || all {
            memory::run(&self, &platform, &load_thread).await?;
        }
        if self.latency || all {
            latency::run(&self, &platform, &load_thread).await?;
        }
        if self.storm || all {
            storm::run(&self, &platform, &load_thread).await?;
        }
        platform.cluster.stop().await;
        Ok(())
    }

    /// The kind of a subscriber.
    fn kind_of(&self, subscriber: u32) -> SubscriberKind {
        self.kinds[subscriber as usize % self.kinds.len()]
    }

    /// The subscriptions of all subscribers, at addresses that `label` makes unique.
    fn subscriptions<'a>(
        &'a self,
        platform: &'a Platform,
        label: &'a str,
    ) -> impl Iterator<Item = Subscription> + 'a {
        (0..self.subscribers)
            .map(move |subscriber| platform.subscription(self.kind_of(subscriber), subscriber, label))
    }

    /// The addresses of all subscribers.
    fn addresses(&self, label: &str) -> Vec<String> {
        (0..self.subscribers)
            .map(|subscriber| Platform::address(self.kind_of(subscriber), subscriber, label))
            .collect()
    }

    /// `mails` mails from number `first` on, to subscribers at random.
    fn delivery_log(&self, first: usize, mails: u32) -> Arc<DeliveryLog> {
        let mut random = StdRng::seed_from_u64(first as u64);
        Arc::new(DeliveryLog::new(first, (0..mails).map(|_| random.random_range(0..self.subscribers))))
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
