//! Mail at a constant rate until it is stopped.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tempmail_tests::OutgoingMail;
use tempmail_tests::load::RetryingSender;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

/// Concurrent senders.
const SENDERS: usize = 40;

/// An accepted mail.
#[derive(Debug)]
pub(crate) struct NumberedMail {
    /// The number of its address.
    pub(crate) address: usize,
    /// Its subject, which no other mail has.
    pub(crate) subject: String,
    /// Attempts until it was accepted.
    pub(crate) attempts: usize,
}

/// Senders that are running.
#[derive(Debug)]
pub(crate) struct Load {
    state: Arc<LoadState>,
    senders: Vec<JoinHandle<Vec<NumberedMail>>>,
}

#[derive(Debug)]
struct LoadState {
    server: [SocketAddr; 1],
    addresses: Vec<String>,
    /// Time between two mails of a sender.
    pace: Duration,
    started: AtomicUsize,
    accepted: AtomicUsize,
    is_stopped: AtomicBool,
}

impl Load {
    /// Sends so many mails a second, to each address in turn.
    pub(crate) fn start(server: SocketAddr, rate: u32, addresses: &[String]) -> Self {
        let senders = u32::try_from(SENDERS).expect("a few senders");
        let state = Arc::new(LoadState {
            server: [server],
            addresses: addresses.to_vec(),
            pace: Duration::from_secs(1) * senders / rate,
            started: AtomicUsize::new(0),
            accepted: AtomicUsize::new(0),
            is_stopped: AtomicBool::new(false),
        });
        let senders = (0..SENDERS).map(|_| tokio::spawn(run_sender(Arc::clone(&state)))).collect();
        Self { state, senders }
    }

    /// How many mails are accepted so far.
    pub(crate) fn accepted(&self) -> usize {
        self.state.accepted.load(Ordering::Relaxed)
    }

    /// Waits until the mails that were begun are accepted, and returns all of them.
    pub(crate) async fn stop(self) -> Vec<NumberedMail> {
        self.state.is_stopped.store(true, Ordering::Relaxed);
        let mut accepted = Vec::new();
        for sender in self.senders {
            accepted.extend(sender.await.expect("a sender does not panic"));
        }
        accepted
    }
}

async fn run_sender(state: Arc<LoadState>) -> Vec<NumberedMail> {
    let mut session = RetryingSender::starting_at(&state.server, 0);
    let mut pace = interval(state.pace);
    // After an outage the rate stays the same, without a burst.
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut accepted = Vec::new();
    while !state.is_stopped.load(Ordering::Relaxed) {
        pace.tick().await;
        let number = state.started.fetch_add(1, Ordering::Relaxed);
        let address = number % state.addresses.len();
        let recipient = state.addresses[address].clone();
        let mail = session.send(&OutgoingMail { recipient, subject: format!("mail {number}") }).await;
        state.accepted.fetch_add(1, Ordering::Relaxed);
        accepted.push(NumberedMail { address, subject: mail.subject, attempts: mail.attempts });
    }
    accepted
}
