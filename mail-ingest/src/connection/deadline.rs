//! The time that clients may take, and the deadline of each. A new wait only stores its deadline; the timer is reset
//! when it fires too early, not for every read.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tempmail_runtime::config::Smtp;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::smtp::AwaitedInput;
use crate::smtp::reply::{self, Reply};

/// Time in which message data may begin slowly.
const RATE_GRACE: Duration = Duration::from_secs(30);

/// The timeouts of all connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    command: Duration,
    data: Duration,
    /// Octets per second.
    min_data_rate: u64,
    transaction: Duration,
    session: Duration,
}

impl Timeouts {
    /// As configured.
    pub(crate) fn from_config(config: &Smtp) -> Self {
        Self {
            transaction: Duration::from_secs(config.transaction_seconds),
            session: Duration::from_secs(config.session_seconds),
            ..Self::new(config.command_seconds, config.data_seconds, config.min_data_rate)
        }
    }

    /// Seconds between commands, seconds between two blocks of data, and the least octets per second of message
    /// data (0: no minimum). Transactions and sessions take as long as they like.
    pub(super) fn new(command: u64, data: u64, min_data_rate: u64) -> Self {
        Self {
            command: Duration::from_secs(command),
            data: Duration::from_secs(data),
            min_data_rate,
            transaction: Duration::MAX,
            session: Duration::MAX,
        }
    }

    /// The time between commands, also that of a TLS handshake and of a write.
    pub(super) fn command(&self) -> Duration {
        self.command
    }

    /// The time between two blocks of message data, and over which their rate is judged.
    pub(super) fn data(&self) -> Duration {
        self.data
    }

    /// The time from MAIL to the end of the message.
    pub(super) fn transaction(&self) -> Duration {
        self.transaction
    }

    /// The time of a session, after which it ends with its open transaction.
    pub(super) fn session(&self) -> Duration {
        self.session
    }

    /// The time that message data has at its beginning; `None` if there is no minimum rate.
    pub(super) fn rate_grace(&self) -> Option<Duration> {
        (self.min_data_rate > 0).then_some(RATE_GRACE)
    }

    /// The time that so many octets take at the minimum rate.
    pub(super) fn time_of(&self, octets: u64) -> Duration {
        Duration::from_millis(octets.saturating_mul(1_000).checked_div(self.min_data_rate).unwrap_or(0))
    }
}

/// Further away than any deadline that is configured.
const FAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// The deadline of the input that a connection waits for.
#[derive(Debug)]
pub(super) struct Deadline<'a> {
    timeouts: &'a Timeouts,
    awaited: AwaitedInput,
    started: Instant,
    /// When message data is too slow, unless more arrives.
    rate: Option<Instant>,
    at: Instant,
    /// Sent when the deadline expires.
    reply: Reply,
    /// The absolute end of the transaction or session, whatever arrives.
    end: (Instant, Reply),
    timer: Pin<Box<Sleep>>,
}

impl<'a> Deadline<'a> {
    pub(super) fn new(timeouts: &'a Timeouts) -> Self {
        let started = Instant::now();
        let at = started + timeouts.command();
        let timer = Box::pin(sleep_until(at));
        let awaited = AwaitedInput { completed: 0, data: None };
        let end = (started + FAR, reply::SESSION_TOO_LONG);
        Self { timeouts, awaited, started, rate: None, at, reply: reply::TIMEOUT, end, timer }
    }

    /// Sets the awaited input: a new wait has a new deadline, and so has each block of data.
    pub(super) fn wait_for(&mut self, awaited: AwaitedInput) {
        if awaited == self.awaited {
            return;
        }
        let now = Instant::now();
        let mut received = self.awaited.data.unwrap_or(0);
        if awaited.completed != self.awaited.completed {
            self.started = now;
            self.rate = None;
            received = 0;
        }
        self.awaited = awaited;
        (self.at, self.reply) = match awaited.data {
            None => (self.started + self.timeouts.command(), reply::TIMEOUT),
            Some(octets) => {
                let block = now + self.timeouts.data();
                self.rate = self.rate_deadline(octets.saturating_sub(received), block);
                match self.rate {
                    Some(rate) if rate < block => (rate, reply::TOO_SLOW),
                    _ => (block, reply::TIMEOUT),
                }
            }
        };
    }

    /// Each octet extends the time by what it takes at the minimum rate. What is in advance is never more than the
    /// time between two blocks, so that the rate is that of a window that slides, not of the whole message.
    fn rate_deadline(&self, additional: u64, block: Instant) -> Option<Instant> {
        let grace = self.timeouts.rate_grace()?;
        let before = self.rate.unwrap_or(self.started + grace);
        Some((before + self.timeouts.time_of(additional)).min(block))
    }

    /// Sets the absolute end and its reply, which no input and no write extends.
    pub(super) fn end_at(&mut self, at: Instant, reply: Reply) {
        self.end = (at, reply);
    }

    /// Extends the deadline for a write, since the client may not read its replies.
    pub(super) fn wait_for_write(&mut self) {
        self.at = self.at.max(Instant::now() + self.timeouts.command());
    }

    /// Ready with the reply that ends the session when the deadline expires.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Reply> {
        let (at, reply) = if self.end.0 < self.at { self.end } else { (self.at, self.reply) };
        // An earlier deadline needs the timer now.
        if self.timer.deadline() > at {
            self.timer.as_mut().reset(at);
        }
        while self.timer.as_mut().poll(cx).is_ready() {
            if Instant::now() >= at {
                return Poll::Ready(reply);
            }
            self.timer.as_mut().reset(at);
        }
        Poll::Pending
    }
}

/// `time` from `start`, or further away than any deadline.
pub(super) fn end_after(start: Instant, time: Duration) -> Instant {
    start + time.min(FAR)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    async fn expires_after(deadline: &mut Deadline<'_>) -> (u64, Reply) {
        let before = Instant::now();
        let reply = poll_fn(|cx| deadline.poll(cx)).await;
        (before.elapsed().as_secs(), reply)
    }

    #[tokio::test(start_paused = true)]
    async fn gives_a_command_its_time_however_it_is_split() {
        let timeouts = Timeouts::new(60, 180, 1024);
        let mut deadline = Deadline::new(&timeouts);
        tokio::time::advance(Duration::from_secs(50)).await;
        deadline.wait_for(AwaitedInput { completed: 0, data: None });
        assert_eq!(expires_after(&mut deadline).await, (10, reply::TIMEOUT));
        deadline.wait_for(AwaitedInput { completed: 1, data: None });
        assert_eq!(expires_after(&mut deadline).await, (60, reply::TIMEOUT));
    }

    #[tokio::test(start_paused = true)]
    async fn requires_a_data_rate_and_limits_the_time_between_blocks() {
        let timeouts = Timeouts::new(60, 180, 1024);
        let mut deadline = Deadline::new(&timeouts);
        deadline.wait_for(AwaitedInput { completed: 1, data: Some(0) });
        assert_eq!(expires_after(&mut deadline).await, (30, reply::TOO_SLOW));
        deadline.wait_for(AwaitedInput { completed: 2, data: Some(0) });
        deadline.wait_for(AwaitedInput { completed: 2, data: Some(100 * 1024) });
        assert_eq!(expires_after(&mut deadline).await, (130, reply::TOO_SLOW));
        deadline.wait_for(AwaitedInput { completed: 2, data: Some(1 << 30) });
        assert_eq!(expires_after(&mut deadline).await, (180, reply::TIMEOUT));
        let without_rate = Timeouts::new(60, 180, 0);
        let mut deadline = Deadline::new(&without_rate);
        deadline.wait_for(AwaitedInput { completed: 1, data: Some(0) });
        assert_eq!(expires_after(&mut deadline).await, (180, reply::TIMEOUT));
    }

    #[tokio::test(start_paused = true)]
    async fn judges_the_data_rate_by_what_arrived_of_late() {
        let timeouts = Timeouts::new(60, 180, 1024);
        let mut deadline = Deadline::new(&timeouts);
        let mut octets = 20 << 20;
        deadline.wait_for(AwaitedInput { completed: 1, data: Some(0) });
        deadline.wait_for(AwaitedInput { completed: 1, data: Some(octets) });
        let mut trickled = 0;
        while trickled < 600 {
            tokio::time::advance(Duration::from_secs(20)).await;
            trickled += 20;
            octets += 1;
            deadline.wait_for(AwaitedInput { completed: 1, data: Some(octets) });
            let expired = poll_fn(|cx| Poll::Ready(deadline.poll(cx))).await;
            if let Poll::Ready(reply) = expired {
                assert!(
                    (180..=200).contains(&trickled) && reply == reply::TOO_SLOW,
                    "{trickled} s: {reply:?}"
                );
                return;
            }
        }
        panic!("a message that arrives octet by octet is never ended");
    }

    #[tokio::test(start_paused = true)]
    async fn neither_input_nor_writes_extend_the_absolute_end() {
        let timeouts = Timeouts::new(60, 180, 0);
        let mut deadline = Deadline::new(&timeouts);
        deadline.end_at(Instant::now() + Duration::from_secs(100), reply::TRANSACTION_TOO_LONG);
        tokio::time::advance(Duration::from_secs(70)).await;
        deadline.wait_for(AwaitedInput { completed: 1, data: None });
        deadline.wait_for_write();
        assert_eq!(expires_after(&mut deadline).await, (30, reply::TRANSACTION_TOO_LONG));
    }
}
