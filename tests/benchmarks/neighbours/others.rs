//! The mail that is measured: so many small mails a second, each to another shared inbox. A mail is
//! sent when it is due, whatever the ones before wait for: a stall meets all that come in it, and not
//! only those that a few connections hold. On a thread of its own, apart from the neighbours.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval};

use super::DOMAIN;
use super::session::{Answers, Delivery, Sender};
use crate::mail::Mails;
use crate::measure::{Latencies, millis};

/// Octets a mail.
const SIZE: usize = 3_072;
/// Connections that are kept; one that finds none free is made for its mail.
const KEPT: usize = 4;
/// Addresses to choose from.
const ADDRESSES: u32 = 1_000_000;

/// The senders of everybody else's mail.
#[derive(Debug, Clone)]
pub struct Others {
    smtp: SocketAddr,
    rate: u32,
    mails: Arc<Mails>,
    runs: u64,
}

/// What a run came to. Times are those of accepted mails, and of those that were answered too late.
#[derive(Debug)]
pub struct Measured {
    /// How the mails were answered.
    pub answers: Answers,
    /// From the end of data to the answer.
    pub waits: Latencies,
    /// From when a mail was due to its answer.
    pub whole: Latencies,
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (p99, max) = (millis(self.whole.p99()), millis(self.whole.max()));
        write!(f, "{}; {}; since due: p99 {p99:.2} ms, max {max:.2} ms", self.answers, self.waits)
    }
}

impl Others {
    /// `rate` mails a second.
    pub fn new(smtp: SocketAddr, rate: u32) -> Self {
        Self { smtp, rate, mails: Arc::new(Mails::of_size(SIZE)), runs: 0 }
    }

    /// Sends for so many seconds, and waits for all answers.
    ///
    /// # Errors
    /// The system has no thread left.
    pub async fn run(&mut self, seconds: u32) -> anyhow::Result<Measured> {
        self.runs += 1;
        let others = self.clone();
        tokio::task::spawn_blocking(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            Ok(runtime.block_on(others.run_here(seconds)))
        })
        .await?
    }

    async fn run_here(self, seconds: u32) -> Measured {
        let mails = self.rate as usize * seconds as usize;
        let mut random = StdRng::seed_from_u64(self.runs);
        let mut ticks = interval(Duration::from_secs(1) / self.rate);
        let mut free: VecDeque<Sender> = VecDeque::new();
        let mut under_way = JoinSet::new();
        let (mut number, mut answers) = (0, Answers::default());
        let (mut waits, mut whole) = (Vec::with_capacity(mails), Vec::with_capacity(mails));
        loop {
            tokio::select! {
                due = ticks.tick(), if number < mails => {
                    number += 1;
                    let sender = free.pop_front().unwrap_or_else(|| Sender::new(self.smtp));
                    let recipient = format!("other{}@{DOMAIN}", random.random_range(0..ADDRESSES));
                    under_way.spawn(send(sender, Arc::clone(&self.mails), number, recipient, due));
                }
                Some(sent) = under_way.join_next() => {
                    // None of them panics or is aborted.
                    let Ok((sender, delivery, since_due)) = sent else { continue };
                    answers.add(delivery);
                    if delivery.counts() {
                        waits.push(delivery.wait);
                        whole.push(since_due);
                    }
                    if sender.is_open() && free.len() < KEPT {
                        free.push_back(sender);
                    }
                }
                else => break,
            }
        }
        Measured { answers, waits: Latencies::new(waits), whole: Latencies::new(whole) }
    }
}

async fn send(
    mut sender: Sender,
    mails: Arc<Mails>,
    number: usize,
    recipient: String,
    due: Instant,
) -> (Sender, Delivery, Duration) {
    let mut mail = Vec::with_capacity(2 * SIZE);
    mails.write(&mut mail, number, &recipient);
    let delivery = sender.send(&[recipient], &mail).await;
    (sender, delivery, due.elapsed())
}
