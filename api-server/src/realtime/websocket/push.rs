//! Pushes new mail: from the ring of recent arrivals, or from the store where the ring is not enough.
//! While Postgres is unavailable the socket stays open and keeps its position in the stream.
//!
//! Only the write buffer holds messages for a slow client: those that do not fit are read again once the
//! client has read.

use std::convert::Infallible;
use std::time::Duration;

use tempmail_runtime::traces::{Stage, StageTimer};
use tempmail_store::MessageRow;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::{Bytes, Message};

use super::authentication::{Authenticated, check_token};
use super::close::CloseReason;
use super::heartbeat::{Heartbeat, HeartbeatAction};
use super::message;
use super::rejection::SocketRejection;
use super::socket::{ClientFrame, Socket, SocketEvent};
use crate::arrivals::{Notifications, Position, Subscriber};
use crate::auth::VerifiedMailboxToken;
use crate::http::deadline::STALL_TIMEOUT;
use crate::realtime::answer::{AnswerMetrics, Surface};
use crate::state::AppState;

/// Messages that are read from the store at a time.
const PAGE_SIZE: i64 = 100;
/// Pause after the store was unavailable.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Pushes until the socket is to be closed.
pub(super) async fn run(
    state: &AppState,
    socket: &mut Socket,
    subscriber: &mut Subscriber,
    authenticated: Authenticated,
) -> CloseReason {
    let Authenticated { token, permit, position } = authenticated;
    let mut pusher = Pusher {
        state,
        socket,
        subscriber,
        token,
        position,
        pending_from: None,
        recheck_pending: false,
        heartbeat: Heartbeat::new(Instant::now()),
        retry_at: None,
        answers: AnswerMetrics::start(Surface::WebSocket, state),
    };
    let Err(reason) = pusher.run().await;
    // Released before the client is notified, so that it can reconnect at once, to any process.
    permit.release().await;
    reason
}

struct Pusher<'a> {
    state: &'a AppState,
    socket: &'a mut Socket,
    subscriber: &'a mut Subscriber,
    token: VerifiedMailboxToken,
    /// Everything up to this position of the stream was pushed.
    position: Position,
    /// The position from which there may be more to push; `None` where there is nothing.
    pending_from: Option<i64>,
    /// Whether the token has to be checked before anything is pushed.
    recheck_pending: bool,
    heartbeat: Heartbeat,
    /// When to read the store again after it was unavailable.
    retry_at: Option<Instant>,
    answers: AnswerMetrics,
}

impl Pusher<'_> {
    async fn run(&mut self) -> Result<Infallible, CloseReason> {
        self.socket.queue(message::auth_ok()).await?;
        self.schedule();
        loop {
            // While the client has not read what was sent, only its rights are checked.
            let can_push = self.pending_from.is_some() && !self.socket.is_sending();
            if (self.recheck_pending || can_push) && self.retry_at.is_none() {
                // Boxed: an idle socket does not keep the memory that reading needs.
                Box::pin(self.advance()).await?;
            }
            match self.socket.next(self.subscriber).await {
                SocketEvent::Notified(notified) => self.on_notified(notified).await?,
                SocketEvent::Frame(ClientFrame::Pong) => self.heartbeat.on_pong(),
                SocketEvent::Frame(ClientFrame::Ping) | SocketEvent::Flushed => {}
                SocketEvent::Frame(ClientFrame::Text(_) | ClientFrame::Unsupported) => {
                    return Err(SocketRejection::InvalidAuthMessage.into());
                }
                SocketEvent::Frame(ClientFrame::Closed(reason)) => return Err(reason),
            }
        }
    }

    async fn on_notified(&mut self, notified: Notifications) -> Result<(), CloseReason> {
        if notified.drain {
            return Err(CloseReason::Draining);
        }
        self.recheck_pending |= notified.recheck;
        self.pending_from = self.pending_from.into_iter().chain(notified.arrived).min();
        if notified.due {
            Box::pin(self.on_due()).await?;
        }
        Ok(())
    }

    /// Sends the ping that is due, or closes a client that reads or answers nothing; then schedules the
    /// next notification.
    async fn on_due(&mut self) -> Result<(), CloseReason> {
        let now = Instant::now();
        self.retry_at = self.retry_at.filter(|at| *at > now);
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

    /// Schedules a notification for the next ping, for the stall timeout, or for the retry. A client that
    /// stalls from now on is noticed at its next ping, before its stall timeout.
    fn schedule(&mut self) {
        let next = match self.socket.stalled_since() {
            Some(since) => since + STALL_TIMEOUT,
            None => self.heartbeat.next(),
        };
        self.subscriber.schedule(self.retry_at.into_iter().fold(next, Instant::min));
    }

    /// Pushes what has arrived, as far as the write buffer has capacity.
    async fn advance(&mut self) -> Result<(), CloseReason> {
        let timer = StageTimer::start(Stage::Answer);
        let (mailbox, now) = (self.token.mailbox, self.state.clock.now());
        if let Some(renewed) = self.state.arrivals.generations().renew(self.position) {
            (self.position, self.recheck_pending, self.pending_from) = (renewed, true, Some(0));
        }
        self.recheck_pending |= self.state.arrivals.is_stale();
        if self.token.expires_at <= now {
            return Err(SocketRejection::InvalidToken.into());
        }
        if !self.recheck_pending
            && let Some(recent) = self.subscriber.recent(mailbox, self.position.seq, self.pending_from)
            && recent.messages.iter().all(|message| message.row.is_some())
        {
            self.pending_from = None;
            let rows = recent.messages.iter().filter_map(|message| message.row.as_ref());
            let readable: Vec<&MessageRow> =
                rows.filter(|row| row.owner == mailbox && row.expires_at() > now).collect();
            return self.push(&readable, recent.up_to, timer).await;
        }
        let scanned = self.state.stream_store.scan_mailbox(mailbox, self.position.seq, PAGE_SIZE, now).await;
        let found = match scanned {
            Err(error) if error.is_unavailable() => None,
            scanned => Some(scanned.map_err(SocketRejection::from)?.ok_or(SocketRejection::InvalidToken)?),
        };
        let (generations, generation) = (self.state.arrivals.generations(), self.position.generation);
        let Some(scan) = found.filter(|scan| generations.is(generation, scan.generation)) else {
            self.retry_at = Some(Instant::now() + RETRY_DELAY);
            self.schedule();
            return Ok(());
        };
        check_token(&self.token, scan.password_epoch, scan.suspended, now)?;
        self.recheck_pending = false;
        if self.socket.is_sending() {
            // Only the rights were to be checked.
            return Ok(());
        }
        let last = scan.rows.last().filter(|_| scan.rows.len() >= usize::try_from(PAGE_SIZE).unwrap_or(0));
        self.pending_from = last.map(|last| last.seq + 1);
        let up_to = last.map_or(scan.position, |last| last.seq);
        self.push(&scan.rows.iter().collect::<Vec<_>>(), up_to, timer).await
    }

    /// Pushes messages up to a position of the stream; `timer` began when they were looked for.
    async fn push(&mut self, rows: &[&MessageRow], up_to: i64, timer: StageTimer) -> Result<(), CloseReason> {
        for row in rows {
            let has_capacity = self.socket.queue(message::new_email(self.token.mailbox, row)).await?;
            self.answers.record(self.state, timer, [row.id]);
            self.position.seq = row.seq;
            if !has_capacity {
                self.pending_from = Some(row.seq + 1);
                return Ok(());
            }
        }
        self.position.seq = self.position.seq.max(up_to);
        Ok(())
    }
}
