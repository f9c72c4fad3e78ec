//! Senders that keep mail flowing while a test does something else.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use super::{AcceptedMail, OutgoingMail, RetryingSender};
use crate::wait::eventually;

/// A mail that was accepted with `250`.
#[derive(Debug, Clone)]
pub struct SentMail {
    /// Recipient, and a subject that no other mail of these senders has.
    pub mail: OutgoingMail,
    /// When it was accepted.
    pub acceptance: AcceptedMail,
}

/// What is sent, and how fast.
#[derive(Debug, Clone)]
pub struct LoadProfile {
    /// SMTP servers.
    pub servers: Vec<SocketAddr>,
    /// Recipients, in turn.
    pub recipients: Vec<String>,
    /// Concurrent connections, spread over the servers.
    pub connections: usize,
    /// Time between two mails of a connection; `None`: as fast as they are accepted.
    pub interval: Option<Duration>,
    /// Mails of each connection; `None`: until the senders are stopped.
    pub mails_per_connection: Option<usize>,
}

/// Running senders.
#[derive(Debug)]
pub struct Senders {
    accepted: Arc<Mutex<Vec<SentMail>>>,
    stop: watch::Sender<bool>,
    connections: Vec<JoinHandle<()>>,
}

impl Senders {
    /// Starts to send.
    pub fn start(profile: &LoadProfile) -> Self {
        let (accepted, stop) = (Arc::<Mutex<Vec<SentMail>>>::default(), watch::Sender::new(false));
        let connections = (0..profile.connections)
            .map(|nth| tokio::spawn(send(profile.clone(), nth, Arc::clone(&accepted), stop.subscribe())))
            .collect();
        Self { accepted, stop, connections }
    }

    /// How many mails are accepted so far.
    pub fn accepted(&self) -> usize {
        lock(&self.accepted).len()
    }

    /// Waits until so many further mails are accepted.
    ///
    /// # Panics
    /// They are not in time, or a sender failed.
    pub async fn wait_for_accepted(&self, mails: usize) {
        let until = self.accepted() + mails;
        eventually("mail is accepted", || async {
            let failed = self.connections.iter().any(JoinHandle::is_finished);
            assert!(!failed, "a sender failed, see above");
            (self.accepted() >= until).then_some(())
        })
        .await;
    }

    /// Finishes the mails in flight, and returns everything that was accepted.
    ///
    /// # Panics
    /// A sender failed.
    pub async fn stop(self) -> Vec<SentMail> {
        self.stop.send_replace(true);
        self.finish().await
    }

    /// Waits until everything is sent, and returns what was accepted.
    ///
    /// # Panics
    /// A sender failed.
    pub async fn finish(self) -> Vec<SentMail> {
        for connection in self.connections {
            connection.await.expect("a sender does not panic");
        }
        lock(&self.accepted).clone()
    }
}

/// Sends the mails of the `nth` connection.
async fn send(
    profile: LoadProfile,
    nth: usize,
    accepted: Arc<Mutex<Vec<SentMail>>>,
    stop: watch::Receiver<bool>,
) {
    let mut session = RetryingSender::starting_at(&profile.servers, nth);
    let mut interval = profile.interval.map(interval);
    if let Some(interval) = &mut interval {
        // No burst after an outage of the servers.
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    }
    for sent in 0..profile.mails_per_connection.unwrap_or(usize::MAX) {
        if let Some(interval) = &mut interval {
            interval.tick().await;
        }
        if *stop.borrow() {
            break;
        }
        let recipient = profile.recipients[(sent + nth) % profile.recipients.len()].clone();
        let mail = OutgoingMail { recipient, subject: format!("mail {sent} of {nth}") };
        let acceptance = session.send(&mail).await;
        lock(&accepted).push(SentMail { mail, acceptance });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
