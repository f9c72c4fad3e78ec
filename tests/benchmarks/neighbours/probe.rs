//! The probe mails that are measured: a steady rate of small mails, each to another shared inbox. A mail
//! is sent when it is due, even if earlier ones still wait, so a stall affects all mails that are due
//! during it. Runs on a thread of its own, apart from the neighbours.

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
use super::session::{Delivery, OutcomeCounts, SmtpSender};
use crate::mail::Mails;
use crate::measure::{Latencies, millis};

/// Octets a mail.
const SIZE: usize = 3_072;
/// Connections that are kept; a mail that finds none free opens another one.
const KEPT: usize = 4;
/// Addresses to choose from.
const ADDRESSES: u32 = 1_000_000;

/// Sends the probe mails.
#[derive(Debug, Clone)]
pub struct ProbeSender {
    smtp: SocketAddr,
    rate: u32,
    mails: Arc<Mails>,
    runs: u64,
}

/// Results of a run. Times include accepted mails and timeouts.
#[derive(Debug)]
pub struct ProbeReport {
    /// Outcomes of the mails.
    pub outcomes: OutcomeCounts,
    /// From the end of data to the reply.
    pub waits: Latencies,
    /// From when a mail was due to its reply.
    pub whole: Latencies,
}

impl fmt::Display for ProbeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (p99, max) = (millis(self.whole.p99()), millis(self.whole.max()));
        write!(f, "{}; {}; since due: p99 {p99:.2} ms, max {max:.2} ms", self.outcomes, self.waits)
    }
}

impl ProbeSender {
    /// `rate` mails a second.
    pub fn new(smtp: SocketAddr, rate: u32) -> Self {
        Self { smtp, rate, mails: Arc::new(Mails::of_size(SIZE)), runs: 0 }
    }

    /// Sends for `seconds`, and waits for all outcomes.
    ///
    /// # Errors
    /// The system has no thread left.
    pub async fn run(&mut self, seconds: u32) -> anyhow::Result<ProbeReport> {
        self.runs += 1;
        let probe = self.clone();
        tokio::task::spawn_blocking(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            Ok(runtime.block_on(probe.run_here(seconds)))
        })
        .await?
    }

    async fn run_here(self, seconds: u32) -> ProbeReport {
        let mails = self.rate as usize * seconds as usize;
        let mut random = StdRng::seed_from_u64(self.runs);
        let mut ticks = interval(Duration::from_secs(1) / self.rate);
        let mut free: VecDeque<SmtpSender> = VecDeque::new();
        let mut in_flight = JoinSet::new();
        let (mut number, mut outcomes) = (0, OutcomeCounts::default());
        let (mut waits, mut whole) = (Vec::with_capacity(mails), Vec::with_capacity(mails));
        loop {
            tokio::select! {
                due = ticks.tick(), if number < mails => {
                    number += 1;
                    let sender = free.pop_front().unwrap_or_else(|| SmtpSender::new(self.smtp));
                    let recipient = format!("other{}@{DOMAIN}", random.random_range(0..ADDRESSES));
                    in_flight.spawn(send(sender, Arc::clone(&self.mails), number, recipient, due));
                }
                Some(sent) = in_flight.join_next() => {
                    // None of them panics or is aborted.
                    let Ok((sender, delivery, since_due)) = sent else { continue };
                    outcomes.add(delivery);
                    if delivery.is_measured() {
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
        ProbeReport { outcomes, waits: Latencies::new(waits), whole: Latencies::new(whole) }
    }
}

async fn send(
    mut sender: SmtpSender,
    mails: Arc<Mails>,
    number: usize,
    recipient: String,
    due: Instant,
) -> (SmtpSender, Delivery, Duration) {
    let mut mail = Vec::with_capacity(2 * SIZE);
    mails.write(&mut mail, number, &recipient);
    let delivery = sender.send(&[recipient], &mail).await;
    (sender, delivery, due.elapsed())
}
