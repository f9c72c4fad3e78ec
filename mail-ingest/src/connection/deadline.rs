//! The deadline of a client. A new wait only stores its deadline; the timer is reset when it fires
//! too early, not for every read.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::time::{Instant, Sleep, sleep_until};

use super::timeouts::Timeouts;
use crate::smtp::AwaitedInput;
use crate::smtp::reply::{self, Reply};

/// The deadline of the input that a connection waits for.
#[derive(Debug)]
pub(super) struct Deadline<'a> {
    timeouts: &'a Timeouts,
    awaited: AwaitedInput,
    started: Instant,
    at: Instant,
    /// Sent when the deadline expires.
    reply: Reply,
    timer: Pin<Box<Sleep>>,
}

impl<'a> Deadline<'a> {
    pub(super) fn new(timeouts: &'a Timeouts) -> Self {
        let started = Instant::now();
        let at = started + timeouts.command();
        let timer = Box::pin(sleep_until(at));
        let awaited = AwaitedInput { completed: 0, data: None };
        Self { timeouts, awaited, started, at, reply: reply::TIMEOUT, timer }
    }

    /// Sets the awaited input: a new wait has a new deadline, and so has each block of data.
    pub(super) fn wait_for(&mut self, awaited: AwaitedInput) {
        if awaited == self.awaited {
            return;
        }
        let now = Instant::now();
        if awaited.completed != self.awaited.completed {
            self.started = now;
        }
        self.awaited = awaited;
        (self.at, self.reply) = match awaited.data {
            None => (self.started + self.timeouts.command(), reply::TIMEOUT),
            Some(octets) => {
                let block = now + self.timeouts.data();
                match self.timeouts.rate_deadline(self.started, octets) {
                    Some(rate) if rate < block => (rate, reply::TOO_SLOW),
                    _ => (block, reply::TIMEOUT),
                }
            }
        };
    }

    /// Extends the deadline for a write, since the client may not read its replies.
    pub(super) fn wait_for_write(&mut self) {
        self.at = self.at.max(Instant::now() + self.timeouts.command());
    }

    /// Ready with the reply that ends the session when the deadline expires.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Reply> {
        // An earlier deadline needs the timer now.
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
    use std::time::Duration;

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
        deadline.wait_for(AwaitedInput { completed: 2, data: Some(100 * 1024) });
        assert_eq!(expires_after(&mut deadline).await, (100, reply::TOO_SLOW));
        deadline.wait_for(AwaitedInput { completed: 2, data: Some(1 << 30) });
        assert_eq!(expires_after(&mut deadline).await, (180, reply::TIMEOUT));
        let without_rate = Timeouts::new(60, 180, 0);
        let mut deadline = Deadline::new(&without_rate);
        deadline.wait_for(AwaitedInput { completed: 1, data: Some(0) });
        assert_eq!(expires_after(&mut deadline).await, (180, reply::TIMEOUT));
    }
}
