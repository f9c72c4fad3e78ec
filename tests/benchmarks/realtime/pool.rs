//! Thousands of subscribers on one thread, so that the machine is left to the server.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::ensure;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::delivery_log::DeliveryLog;
use super::subscriber::{Disconnect, Subscriber, Subscription};

/// How long it may take until all wait.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(120);
/// Pause between two groups of clients that are started.
const STEP: Duration = Duration::from_millis(20);

/// The thread that all subscribers and senders run on.
#[derive(Debug)]
pub struct LoadThread(Option<Runtime>);

impl LoadThread {
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

impl Drop for LoadThread {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// State that the subscribers of a pool share.
#[derive(Debug)]
pub struct PoolState {
    /// Where they connect to.
    pub server: SocketAddr,
    /// Where they record the mails that they receive.
    pub delivery_log: Arc<DeliveryLog>,
    open: watch::Sender<usize>,
    disconnects: Mutex<BTreeMap<Disconnect, usize>>,
}

impl PoolState {
    /// Counts a subscriber that waits.
    pub(super) fn opened(&self) {
        self.open.send_modify(|open| *open += 1);
    }

    /// Counts a wait that ended unexpectedly; `was_open`: it had started.
    pub(super) fn disconnected(&self, was_open: bool, why: Disconnect) {
        if was_open {
            self.open.send_modify(|open| *open -= 1);
        }
        *self.disconnects.lock().unwrap_or_else(PoisonError::into_inner).entry(why).or_insert(0) += 1;
    }
}

/// The subscribers. They disconnect when dropped.
#[derive(Debug)]
pub struct SubscriberPool {
    shared: Arc<PoolState>,
    subscribers: JoinSet<()>,
    handle: Handle,
}

impl SubscriberPool {
    /// An empty pool.
    pub fn new(load_thread: &LoadThread, server: SocketAddr, delivery_log: Arc<DeliveryLog>) -> Self {
        let shared =
            PoolState { server, delivery_log, open: watch::Sender::default(), disconnects: Mutex::default() };
        Self { shared: Arc::new(shared), subscribers: JoinSet::new(), handle: load_thread.handle().clone() }
    }

    /// Connects subscribers with these subscriptions at a rate a second, and returns when all wait.
    ///
    /// # Errors
    /// They don't within two minutes.
    pub async fn connect(
        &mut self,
        subscriptions: impl IntoIterator<Item = Subscription>,
        a_second: usize,
    ) -> anyhow::Result<()> {
        let group = (a_second / 50).max(1);
        let mut steps = tokio::time::interval(STEP);
        for (number, subscription) in (0..).zip(subscriptions) {
            if self.subscribers.len().is_multiple_of(group) {
                steps.tick().await;
            }
            let (client, shared) = (Subscriber { number, subscription }, Arc::clone(&self.shared));
            self.subscribers.spawn_on(async move { client.run(&shared).await }, &self.handle);
        }
        let all = self.subscribers.len();
        let mut open = self.shared.open.subscribe();
        let waiting = timeout(CONNECT_TIMEOUT, open.wait_for(|open| *open >= all)).await.is_ok();
        ensure!(waiting, "{} of {all} wait: {}", *self.shared.open.borrow(), self.disconnects());
        Ok(())
    }

    /// Why waits ended unexpectedly, and how many.
    pub fn disconnects(&self) -> String {
        let disconnects = self.shared.disconnects.lock().unwrap_or_else(PoisonError::into_inner);
        let all: Vec<String> = disconnects.iter().map(|(why, count)| format!("{count} {why}")).collect();
        if all.is_empty() { "none".into() } else { all.join(", ") }
    }
}
