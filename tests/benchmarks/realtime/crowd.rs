//! Thousands of waiters on one thread, which leaves the machine to the server.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::ensure;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinSet;

use super::client::{Client, Ended, Way};
use super::ledger::Ledger;

/// How long it may take until all wait.
const GATHER: Duration = Duration::from_secs(120);
/// Pause between two groups of clients that are started.
const STEP: Duration = Duration::from_millis(20);

/// The one thread of everything that the generator does.
#[derive(Debug)]
pub struct Generator(Option<Runtime>);

impl Generator {
    /// Starts the thread.
    ///
    /// # Errors
    /// There is none.
    pub fn start() -> anyhow::Result<Self> {
        Ok(Self(Some(Builder::new_multi_thread().worker_threads(1).enable_all().build()?)))
    }

    /// Where to start its tasks.
    pub fn handle(&self) -> &Handle {
        self.0.as_ref().expect("it is there until it is dropped").handle()
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// What the waiters of a crowd have in common.
#[derive(Debug)]
pub struct Shared {
    /// Where they connect to.
    pub server: SocketAddr,
    /// Where they write down what they see.
    pub ledger: Arc<Ledger>,
    open: AtomicUsize,
    endings: Mutex<BTreeMap<Ended, usize>>,
}

impl Shared {
    /// One more waits.
    pub(super) fn opened(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    /// A wait ended that should have gone on; whether it had begun.
    pub(super) fn ended(&self, was_open: bool, why: Ended) {
        if was_open {
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
        *self.endings.lock().unwrap_or_else(PoisonError::into_inner).entry(why).or_insert(0) += 1;
    }
}

/// See the module. Leaves when dropped.
#[derive(Debug)]
pub struct Crowd {
    shared: Arc<Shared>,
    waiters: JoinSet<()>,
    handle: Handle,
}

impl Crowd {
    /// Nobody yet.
    pub fn new(generator: &Generator, server: SocketAddr, ledger: Arc<Ledger>) -> Self {
        let shared = Shared { server, ledger, open: AtomicUsize::new(0), endings: Mutex::default() };
        Self { shared: Arc::new(shared), waiters: JoinSet::new(), handle: generator.handle().clone() }
    }

    /// Lets those in who wait in these ways, so many a second, and returns when all wait.
    ///
    /// # Errors
    /// They don't within two minutes.
    pub async fn gather(
        &mut self,
        ways: impl IntoIterator<Item = Way>,
        a_second: usize,
    ) -> anyhow::Result<()> {
        let group = (a_second / 50).max(1);
        let mut steps = tokio::time::interval(STEP);
        for (number, way) in (0..).zip(ways) {
            if self.waiters.len().is_multiple_of(group) {
                steps.tick().await;
            }
            let (client, shared) = (Client { number, way }, Arc::clone(&self.shared));
            self.waiters.spawn_on(async move { client.run(&shared).await }, &self.handle);
        }
        let began = Instant::now();
        while self.open() < self.waiters.len() {
            let endings = self.endings();
            ensure!(began.elapsed() < GATHER, "{} of {} wait: {endings}", self.open(), self.waiters.len());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// How many wait, as they see it.
    pub fn open(&self) -> usize {
        self.shared.open.load(Ordering::Relaxed)
    }

    /// Why waits ended that should have gone on, and how many of them did.
    pub fn endings(&self) -> String {
        let endings = self.shared.endings.lock().unwrap_or_else(PoisonError::into_inner);
        let all: Vec<String> = endings.iter().map(|(why, count)| format!("{count} {why}")).collect();
        if all.is_empty() { "none".into() } else { all.join(", ") }
    }
}
