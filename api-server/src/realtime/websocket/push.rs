//! Pushes new mail, and pings.
//!
//! While Postgres is unavailable the socket stays open and keeps its position in the stream. Only the write buffer holds
//! messages for a slow client: those that do not fit are read again once the client has read.

use std::convert::Infallible;
use std::time::Duration;

use tokio::time::Instant;
use tokio_tungstenite::tungstenite::{Bytes, Message};

use super::close::{CloseReason, SocketRejection};
use super::mailbox::MailboxSource;
use super::message;
use super::socket::{ClientFrame, Socket, SocketEvent};
use crate::http::deadline::STALL_TIMEOUT;
use crate::realtime::answer::{AnswerMetrics, WaitMode};
use crate::realtime::follower::{Batch, Followed, Follower};
use crate::state::AppState;

/// Messages that are read from the store at a time.
const PAGE_SIZE: i64 = 100;
/// Time between two pings. Fixed by the interface.
const INTERVAL: Duration = Duration::from_secs(30);
/// Pings that may be unanswered.
const UNANSWERED_MAX: u8 = 2;

/// Pushes what `follower` gives until the socket is to be closed.
pub(super) async fn run(
    state: &AppState,
    socket: &mut Socket,
    follower: Box<Follower<MailboxSource>>,
) -> CloseReason {
    let answers = AnswerMetrics::start(WaitMode::WebSocket, state);
    let mut pusher = Pusher { state, socket, follower, heartbeat: Heartbeat::new(Instant::now()), answers };
    let Err(reason) = pusher.run().await;
    reason
}

struct Pusher<'a> {
    state: &'a AppState,
    socket: &'a mut Socket,
    follower: Box<Follower<MailboxSource>>,
    heartbeat: Heartbeat,
    answers: AnswerMetrics,
}

impl Pusher<'_> {
    async fn run(&mut self) -> Result<Infallible, CloseReason> {
        self.socket.queue(message::auth_ok()).await?;
        self.schedule();
        loop {
            // While the client has not read what was sent, only its rights are checked.
            let most = if self.socket.is_sending() { 0 } else { PAGE_SIZE };
            match self.socket.next(self.follower.notified(most)).await {
                // Boxed: an idle socket does not keep the memory that reading needs.
                SocketEvent::Notified(()) => Box::pin(self.advance(most)).await?,
                SocketEvent::Frame(ClientFrame::Pong) => self.heartbeat.on_pong(),
                SocketEvent::Frame(ClientFrame::Ping) | SocketEvent::Flushed => {}
                SocketEvent::Frame(ClientFrame::Text(_) | ClientFrame::Unsupported) => {
                    return Err(SocketRejection::InvalidAuthMessage.into());
                }
                SocketEvent::Frame(ClientFrame::Closed(reason)) => return Err(reason),
            }
        }
    }

    async fn advance(&mut self, most: i64) -> Result<(), CloseReason> {
        match self.follower.advance(self.state, most).await {
            Some(Followed::Batch(batch)) => self.push(&batch).await,
            Some(Followed::Due) => self.on_due().await,
            Some(Followed::Drain) => Err(CloseReason::Draining),
            Some(Followed::Lost(error)) => Err(SocketRejection::from(error).into()),
            None => Ok(()),
        }
    }

    /// Pushes messages, as far as the write buffer has capacity.
    async fn push(&mut self, batch: &Batch) -> Result<(), CloseReason> {
        for row in batch.messages() {
            let has_capacity = self.socket.queue(message::new_email(row.owner, row)).await?;
            if let Some(timer) = batch.timer {
                self.answers.record(self.state, timer, [row.id]);
            }
            if !has_capacity {
                self.follower.continue_after(row.seq);
                break;
            }
        }
        Ok(())
    }

    /// Sends the ping that is due, or closes a client that reads or answers nothing; then schedules the
    /// next notification.
    async fn on_due(&mut self) -> Result<(), CloseReason> {
        let now = Instant::now();
        match self.socket.stalled_since() {
            Some(since) if now >= since + STALL_TIMEOUT => return Err(CloseReason::Stalled),
            // A ping would only wait behind what is queued already.
            Some(_) => {}
            None => match self.heartbeat.action_at(now) {
                HeartbeatAction::Wait => {}
                HeartbeatAction::SendPing => {
                    self.socket.queue(Message::Ping(Bytes::new())).await?;
                }
                HeartbeatAction::TimedOut => return Err(CloseReason::NoPong),
            },
        }
        self.schedule();
        Ok(())
    }

    /// Schedules the next ping, or the stall timeout. A client that stalls from now on is noticed at its next ping, before
    /// its stall timeout.
    fn schedule(&mut self) {
        let stalled = self.socket.stalled_since().map(|since| since + STALL_TIMEOUT);
        self.follower.schedule(stalled.unwrap_or_else(|| self.heartbeat.next()));
    }
}

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeartbeatAction {
    /// Nothing before [`Heartbeat::next`].
    Wait,
    /// Send a ping.
    SendPing,
    /// Disconnect the client.
    TimedOut,
}

/// When the next ping is due, and how many are unanswered.
#[derive(Debug)]
struct Heartbeat {
    next: Instant,
    unanswered: u8,
}

impl Heartbeat {
    /// The first ping is due an interval after `now`.
    fn new(now: Instant) -> Self {
        Self { next: now + INTERVAL, unanswered: 0 }
    }

    /// When to call [`action_at`](Self::action_at) next.
    fn next(&self) -> Instant {
        self.next
    }

    /// What to do at `now`; a ping that is due counts as sent.
    fn action_at(&mut self, now: Instant) -> HeartbeatAction {
        if now < self.next {
            return HeartbeatAction::Wait;
        }
        if self.unanswered >= UNANSWERED_MAX {
            return HeartbeatAction::TimedOut;
        }
        self.unanswered += 1;
        self.next = now + INTERVAL;
        HeartbeatAction::SendPing
    }

    /// Records a pong.
    fn on_pong(&mut self) {
        self.unanswered = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::HeartbeatAction::{SendPing, TimedOut, Wait};
    use super::*;

    #[test]
    fn sends_one_ping_per_interval_while_pongs_arrive() {
        let start = Instant::now();
        let mut heartbeat = Heartbeat::new(start);
        for n in 1..=5 {
            let due = start + INTERVAL * n;
            assert_eq!(heartbeat.next(), due);
            assert_eq!(heartbeat.action_at(due - Duration::from_millis(1)), Wait);
            assert_eq!(heartbeat.action_at(due), SendPing);
            assert_eq!(heartbeat.action_at(due), Wait, "one ping per interval");
            heartbeat.on_pong();
        }
    }

    #[test]
    fn times_out_after_two_unanswered_pings() {
        let start = Instant::now();
        let mut heartbeat = Heartbeat::new(start);
        let mut actions = |intervals: [u32; 3]| intervals.map(|n| heartbeat.action_at(start + INTERVAL * n));
        assert_eq!(actions([1, 2, 3]), [SendPing, SendPing, TimedOut]);
        let mut heartbeat = Heartbeat::new(start);
        assert_eq!([1, 2].map(|n| heartbeat.action_at(start + INTERVAL * n)), [SendPing, SendPing]);
        heartbeat.on_pong();
        let actions = [3, 4, 5].map(|n| heartbeat.action_at(start + INTERVAL * n));
        assert_eq!(actions, [SendPing, SendPing, TimedOut]);
    }
}
