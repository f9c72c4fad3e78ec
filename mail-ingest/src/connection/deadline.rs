//! How long a client may take. A wait has one deadline, which is only written down; the timer
//! behind it is set again when it fires too early, not with every read.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use crate::smtp::Waiting;
use crate::smtp::reply::{self, Reply};

/// The average rate of data is looked at from here on.
const RATE_FROM: Duration = Duration::from_secs(30);

/// The times of all sessions.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    command: Duration,
    block: Duration,
    /// Octets a second.
    rate: u64,
}

impl Times {
    /// Seconds for a command, seconds between two blocks of data, and the average octets a
    /// second that data must reach (0: any).
    pub fn new(command: u64, block: u64, rate: u64) -> Self {
        Self { command: Duration::from_secs(command), block: Duration::from_secs(block), rate }
    }

    /// Between commands.
    pub fn command(&self) -> Duration {
        self.command
    }

    /// When data that began at `begun` is too slow if no more than `octets` have come.
    fn rate_deadline(&self, begun: Instant, octets: u64) -> Option<Instant> {
        let seconds = octets.checked_div(self.rate)?;
        begun.checked_add(RATE_FROM.max(Duration::from_secs(seconds)))
    }
}

/// The deadline of what a connection waits for.
#[derive(Debug)]
pub(super) struct Deadline<'a> {
    times: &'a Times,
    waiting: Waiting,
    begun: Instant,
    at: Instant,
    reply: Reply,
    timer: Pin<Box<Sleep>>,
}

impl<'a> Deadline<'a> {
    pub(super) fn new(times: &'a Times) -> Self {
        let begun = Instant::now();
        let at = begun + times.command;
        let timer = Box::pin(sleep_until(at));
        let waiting = Waiting { commands: 0, data: None };
        Self { times, waiting, begun, at, reply: reply::TIMEOUT, timer }
    }

    /// Says what is waited for now: a new wait has a new deadline, and so has each block of data.
    pub(super) fn wait_for(&mut self, waiting: Waiting) {
        if waiting == self.waiting {
            return;
        }
        let now = Instant::now();
        if waiting.commands != self.waiting.commands {
            self.begun = now;
        }
        self.waiting = waiting;
        (self.at, self.reply) = match waiting.data {
            None => (self.begun + self.times.command, reply::TIMEOUT),
            Some(octets) => {
                let block = now + self.times.block;
                match self.times.rate_deadline(self.begun, octets) {
                    Some(rate) if rate < block => (rate, reply::TOO_SLOW),
                    _ => (block, reply::TIMEOUT),
                }
            }
        };
    }

    /// Begins a wait of its own for a client that does not read its replies.
    pub(super) fn wait_for_write(&mut self) {
        self.at = self.at.max(Instant::now() + self.times.command);
    }

    /// Ready with the reply that ends the session when the time is over.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Reply> {
        // A deadline that came nearer needs the timer at once.
        if self.timer.deadline() > self.at {
            self.timer.as_mut().reset(self.at);
        }
        while self.timer.as_mut().poll(cx).is_ready() {
            if Instant::now() >= self.at {
                return Poll::Ready(self.reply);
            }
            self.timer.as_mut().reset(self.at);
        }
        Poll::Pending
    }
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
    async fn commands_have_their_time_however_many_blocks_they_come_in() {
        let times = Times::new(60, 180, 1024);
        let mut deadline = Deadline::new(&times);
        tokio::time::advance(Duration::from_secs(50)).await;
        deadline.wait_for(Waiting { commands: 0, data: None });
        assert_eq!(expires_after(&mut deadline).await, (10, reply::TIMEOUT));
        deadline.wait_for(Waiting { commands: 1, data: None });
        assert_eq!(expires_after(&mut deadline).await, (60, reply::TIMEOUT));
    }

    #[tokio::test(start_paused = true)]
    async fn data_must_keep_its_rate_and_its_blocks_their_distance() {
        let times = Times::new(60, 180, 1024);
        let mut deadline = Deadline::new(&times);
        deadline.wait_for(Waiting { commands: 1, data: Some(0) });
        assert_eq!(expires_after(&mut deadline).await, (30, reply::TOO_SLOW));
        deadline.wait_for(Waiting { commands: 2, data: Some(100 * 1024) });
        assert_eq!(expires_after(&mut deadline).await, (100, reply::TOO_SLOW));
        deadline.wait_for(Waiting { commands: 2, data: Some(1 << 30) });
        assert_eq!(expires_after(&mut deadline).await, (180, reply::TIMEOUT));
        let any = Times::new(60, 180, 0);
        let mut deadline = Deadline::new(&any);
        deadline.wait_for(Waiting { commands: 1, data: Some(0) });
        assert_eq!(expires_after(&mut deadline).await, (180, reply::TIMEOUT));
    }
}
