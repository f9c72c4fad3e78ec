//! Generates mail from senders that retry as RFC 5321 4.5.4.1 requires: a deferred or broken transaction
//! is repeated until the mail is accepted.

pub mod senders;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::time::{Interval, MissedTickBehavior, interval, sleep};

use crate::smtp::{SmtpClient, message};
use crate::wait::DEADLINE;

/// Time before a retry.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// A mail to send.
#[derive(Debug, Clone)]
pub struct OutgoingMail {
    /// Its recipient.
    pub recipient: String,
    /// Its subject.
    pub subject: String,
}

/// An accepted mail.
#[derive(Debug, Clone)]
pub struct AcceptedMail {
    /// Its subject.
    pub subject: String,
    /// When its `250` was received.
    pub at: Instant,
    /// Number of attempts. A stored mail may have lost its `250`, so after a retry it may be stored twice.
    pub attempts: usize,
}

/// Concurrent senders.
#[derive(Debug, Clone)]
pub struct LoadGenerator {
    /// SMTP servers, tried in turn.
    pub servers: Vec<SocketAddr>,
    /// Connections.
    pub connections: usize,
    /// Total mails a second; `None`: as many as are accepted.
    pub rate: Option<u32>,
}

impl LoadGenerator {
    /// Sends all mails and returns when each was accepted, in no particular order.
    ///
    /// # Panics
    /// A mail is rejected permanently, or not accepted in time.
    pub async fn send(self, mails: &[OutgoingMail]) -> Vec<AcceptedMail> {
        let senders = (0..self.connections).map(|number| self.sender(mails, number));
        join_all(senders).await.into_iter().flatten().collect()
    }

    /// Sends each `connections`-th mail.
    async fn sender(&self, mails: &[OutgoingMail], number: usize) -> Vec<AcceptedMail> {
        let mut pace = self.pace();
        let mut session = RetryingSender::starting_at(&self.servers, number);
        let mut accepted = Vec::new();
        for mail in mails.iter().skip(number).step_by(self.connections) {
            if let Some(pace) = &mut pace {
                pace.tick().await;
            }
            accepted.push(session.send(mail).await);
        }
        accepted
    }

    fn pace(&self) -> Option<Interval> {
        let connections = u32::try_from(self.connections).expect("a few connections");
        let mut pace = interval(Duration::from_secs(1) * connections / self.rate?);
        // After an outage of the servers the rate stays the same, without a burst.
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Some(pace)
    }
}

/// A connection to one of the servers, replaced when it breaks.
#[derive(Debug)]
pub struct RetryingSender<'a> {
    servers: &'a [SocketAddr],
    next: usize,
    client: Option<SmtpClient>,
}

impl<'a> RetryingSender<'a> {
    /// Without a connection yet; the first is to server `nth`, modulo their number.
    pub fn starting_at(servers: &'a [SocketAddr], nth: usize) -> Self {
        Self { servers, next: nth, client: None }
    }

    /// Sends a mail until it is accepted.
    ///
    /// # Panics
    /// The mail is rejected permanently, or not accepted in time.
    pub async fn send(&mut self, mail: &OutgoingMail) -> AcceptedMail {
        let message = message("Ada <ada@client.example>", &mail.subject, "");
        let deadline = Instant::now() + DEADLINE;
        let mut attempts = 0;
        loop {
            attempts += 1;
            if self.try_send(&mail.recipient, &message).await {
                return AcceptedMail { subject: mail.subject.clone(), at: Instant::now(), attempts };
            }
            assert!(Instant::now() < deadline, "`{}` is not accepted", mail.subject);
            sleep(RETRY_PAUSE).await;
        }
    }

    /// Whether the mail was accepted. If not, the next attempt uses another server.
    async fn try_send(&mut self, recipient: &str, message: &[u8]) -> bool {
        let mut client = match self.client.take() {
            Some(client) => client,
            None => match self.connect().await {
                Some(client) => client,
                None => return false,
            },
        };
        let Some(reply) = client.try_transact("ada@client.example", &[recipient], message).await else {
            return false;
        };
        assert_ne!(reply.code / 100, 5, "{reply:?}");
        let is_accepted = reply.code == 250;
        self.client = is_accepted.then_some(client);
        is_accepted
    }

    async fn connect(&mut self) -> Option<SmtpClient> {
        let server = self.servers[self.next % self.servers.len()];
        self.next += 1;
        let mut client = SmtpClient::connect_without_greeting(server).await.ok()?;
        if client.try_reply().await?.code != 220 {
            return None;
        }
        client.send("EHLO client.example\r\n").await;
        (client.try_reply().await?.code == 250).then_some(client)
    }
}
