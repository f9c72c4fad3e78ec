//! OutgoingMail that flows while something happens.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tempmail_tests::OutgoingMail;
use tempmail_tests::load::{AcceptedMail, RetryingSender};
use tempmail_tests::wait::eventually;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

/// A mail that has its `250`.
#[derive(Debug, Clone)]
pub struct Accepted {
    /// To whom it was sent, and with which subject, that no other mail has.
    pub mail: OutgoingMail,
    /// When.
    pub taken: AcceptedMail,
}

/// What is sent, and how fast.
#[derive(Debug, Clone)]
pub struct Flow {
    /// Servers that take mail.
    pub servers: Vec<SocketAddr>,
    /// Addresses in turn.
    pub recipients: Vec<String>,
    /// Connections at a time; they begin at one server after the other.
    pub connections: usize,
    /// Time from mail to mail of one connection, where it does not send as fast as it can.
    pub pace: Option<Duration>,
    /// Mails of each connection; without a number, until it is stopped.
    pub each: Option<usize>,
}

/// Senders at work.
#[derive(Debug)]
pub struct Senders {
    accepted: Arc<Mutex<Vec<Accepted>>>,
    stop: watch::Sender<bool>,
    connections: Vec<JoinHandle<()>>,
}

impl Senders {
    /// Begins to send.
    pub fn start(flow: &Flow) -> Self {
        let (accepted, stop) = (Arc::<Mutex<Vec<Accepted>>>::default(), watch::Sender::new(false));
        let connections = (0..flow.connections)
            .map(|nth| tokio::spawn(send(flow.clone(), nth, Arc::clone(&accepted), stop.subscribe())))
            .collect();
        Self { accepted, stop, connections }
    }

    /// Returns when this many mails more than now have their `250`.
    pub async fn go_on_for(&self, mails: usize) {
        let until = lock(&self.accepted).len() + mails;
        eventually("mail is taken", || async {
            let failed = self.connections.iter().any(JoinHandle::is_finished);
            assert!(!failed, "a sender failed: what it says is above");
            (lock(&self.accepted).len() >= until).then_some(())
        })
        .await;
    }

    /// Lets each finish the mail in hand, and gives all that have their `250`.
    pub async fn stop(self) -> Vec<Accepted> {
        self.stop.send_replace(true);
        self.done().await
    }

    /// Waits until each has sent what it was to send, and gives all of it.
    pub async fn done(self) -> Vec<Accepted> {
        for connection in self.connections {
            connection.await.unwrap();
        }
        lock(&self.accepted).clone()
    }
}

/// Sends what is the `nth` connection's to send.
async fn send(flow: Flow, nth: usize, accepted: Arc<Mutex<Vec<Accepted>>>, stop: watch::Receiver<bool>) {
    let mut session = RetryingSender::starting_at(&flow.servers, nth);
    let mut pace = flow.pace.map(interval);
    if let Some(pace) = &mut pace {
        // After an absence of the servers the flow is what it was, and no burst.
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    }
    for sent in 0..flow.each.unwrap_or(usize::MAX) {
        if let Some(pace) = &mut pace {
            pace.tick().await;
        }
        if *stop.borrow() {
            break;
        }
        let recipient = flow.recipients[(sent + nth) % flow.recipients.len()].clone();
        let mail = OutgoingMail { recipient, subject: format!("mail {sent} of {nth}") };
        let taken = session.send(&mail).await;
        lock(&accepted).push(Accepted { mail, taken });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
