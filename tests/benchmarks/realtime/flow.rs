//! Mails, or publications of a peer, at a steady rate over kept connections, whatever their answers
//! take.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::delivery_log::DeliveryLog;
use super::peer::Publisher;
use crate::http::HttpClient;
use crate::load::SmtpSession;
use crate::mail::Mails;

/// Connections at a time; more than are ever waiting for their answer.
const CONNECTIONS: usize = 32;
/// Octets a mail.
const SIZE: usize = 3_072;

/// Where the mails of a delivery log are sent.
#[derive(Debug)]
pub enum Destination {
    /// To the address of its subscriber each.
    Mail {
        /// Where mail is taken.
        smtp: SocketAddr,
        /// Of the subscribers.
        addresses: Vec<String>,
        /// What is sent.
        mails: Mails,
    },
    /// To a peer, to the channel of its subscriber each.
    Publication(Publisher),
}

impl Destination {
    /// Mails of 3 KB.
    pub fn mail(smtp: SocketAddr, addresses: Vec<String>) -> Self {
        Self::Mail { smtp, addresses, mails: Mails::of_size(SIZE) }
    }

    async fn open(&self) -> anyhow::Result<Line> {
        Ok(match self {
            Self::Mail { smtp, .. } => Line::Mail(SmtpSession::open(*smtp).await?),
            Self::Publication(publisher) => Line::Publication(HttpClient::connect(publisher.http).await?),
        })
    }

    /// Sends one; returns when, and when it was accepted.
    async fn send(
        &self,
        line: &mut Line,
        number: usize,
        subscriber: u32,
    ) -> anyhow::Result<(Instant, Instant)> {
        match (self, line) {
            (Self::Mail { addresses, mails, .. }, Line::Mail(session)) => {
                let to = &addresses[usize::try_from(subscriber)?];
                let took = session.send_in_groups(mails, number, to).await?;
                let accepted = Instant::now();
                Ok((accepted - took, accepted))
            }
            (Self::Publication(publisher), Line::Publication(client)) => {
                let sent = Instant::now();
                publisher.publish(client, number, subscriber).await?;
                Ok((sent, Instant::now()))
            }
            _ => anyhow::bail!("a line of another destination"),
        }
    }
}

enum Line {
    Mail(SmtpSession),
    Publication(HttpClient),
}

/// Sends all mails of a delivery log at a rate a second. Returns the largest delay of a mail.
///
/// # Errors
/// One is refused.
pub async fn send(
    load_thread: &Handle,
    destination: Destination,
    rate: u32,
    delivery_log: Arc<DeliveryLog>,
) -> anyhow::Result<Duration> {
    let next = Arc::new(AtomicUsize::new(0));
    let destination = Arc::new(destination);
    let begun = Instant::now();
    let mut lines = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (next, destination) = (Arc::clone(&next), Arc::clone(&destination));
        let delivery_log = Arc::clone(&delivery_log);
        let send = async move {
            let mut line = destination.open().await?;
            let mut late = Duration::ZERO;
            loop {
                let state = next.fetch_add(1, Ordering::Relaxed);
                let Some(number) = delivery_log.numbers().nth(state) else { return anyhow::Ok(late) };
                let due = begun + Duration::from_secs(1) * u32::try_from(state)? / rate;
                tokio::time::sleep_until(due.into()).await;
                late = late.max(due.elapsed());
                let (sent, accepted) =
                    destination.send(&mut line, number, delivery_log.subscriber_of(number)).await?;
                delivery_log.accepted(number, sent, accepted);
            }
        };
        lines.spawn_on(send, load_thread);
    }
    let mut late = Duration::ZERO;
    while let Some(line) = lines.join_next().await {
        late = late.max(line??);
    }
    Ok(late)
}
