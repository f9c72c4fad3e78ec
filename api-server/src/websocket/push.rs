//! Pushes what arrives: from the ring of recent arrivals, and from the store where that is not
//! enough. While Postgres is away the socket stays open and keeps its place in the stream.
//!
//! Nothing waits in memory for a slow client but the write buffer: what it has no room for is
//! looked up again when it has read.

use std::convert::Infallible;
use std::time::Duration;

use tempmail_store::MessageRow;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::{Bytes, Message};

use super::authentication::{Authenticated, check};
use super::end::{End, Refusal};
use super::heartbeat::{Beat, Heartbeat};
use super::message;
use super::socket::{Event, Frame, Socket};
use crate::arrivals::{Waiter, Woken};
use crate::auth::MailboxClaim;
use crate::server::STALLED;
use crate::state::AppState;

/// Messages that are read from the store at a time.
const PAGE: i64 = 100;
/// Pause after the store failed.
const RETRY: Duration = Duration::from_secs(1);

/// Pushes until the socket is to end.
pub(super) async fn run(
    state: &AppState,
    socket: &mut Socket,
    waiter: &mut Waiter,
    authenticated: Authenticated,
) -> End {
    let Authenticated { claim, slot, position } = authenticated;
    let heartbeat = Heartbeat::new(Instant::now());
    let mut push =
        Push { state, socket, waiter, claim, position, behind: None, unsure: false, heartbeat, retry: None };
    let Err(end) = push.run().await;
    // Given back before the client is told: wherever it connects to then, it does not meet its own
    // place.
    slot.release().await;
    end
}

struct Push<'a> {
    state: &'a AppState,
    socket: &'a mut Socket,
    waiter: &'a mut Waiter,
    claim: MailboxClaim,
    /// Everything up to here in the stream was pushed.
    position: i64,
    /// From where in the stream on there may be more; `None` where there is none.
    behind: Option<i64>,
    /// Whether the claim has to be looked at before anything is pushed.
    unsure: bool,
    heartbeat: Heartbeat,
    /// When to ask the store again that failed.
    retry: Option<Instant>,
}

impl Push<'_> {
    async fn run(&mut self) -> Result<Infallible, End> {
        self.socket.queue(message::auth_ok()).await?;
        self.set_alarm();
        loop {
            // A slow client is asked about its rights, and sent nothing more.
            let wanted = self.unsure || (self.behind.is_some() && !self.socket.is_sending());
            if wanted && self.retry.is_none() {
                // Boxed: an idle socket does not keep the room that reading takes.
                Box::pin(self.advance()).await?;
            }
            match self.socket.next(self.waiter).await {
                Event::Told(woken) => self.told(woken).await?,
                Event::Frame(Frame::Pong) => self.heartbeat.answered(),
                Event::Frame(Frame::Ping) | Event::Flushed => {}
                Event::Frame(Frame::Text(_) | Frame::Unreadable) => {
                    return Err(Refusal::InvalidAuthMessage.into());
                }
                Event::Frame(Frame::End(end)) => return Err(end),
            }
        }
    }

    async fn told(&mut self, woken: Woken) -> Result<(), End> {
        if woken.drain {
            return Err(End::Draining);
        }
        self.unsure |= woken.recheck;
        self.behind = self.behind.into_iter().chain(woken.arrived).min();
        if woken.due {
            Box::pin(self.keep_time()).await?;
        }
        Ok(())
    }

    /// Does what is due, and has itself woken for what will be.
    async fn keep_time(&mut self) -> Result<(), End> {
        let now = Instant::now();
        self.retry = self.retry.filter(|at| *at > now);
        match self.socket.stalled_since() {
            Some(since) if now >= since + STALLED => return Err(End::Stalled),
            // What waits for the client is sent before any ping.
            Some(_) => {}
            None => match self.heartbeat.beat(now) {
                Beat::Rest => {}
                Beat::Ping => {
                    self.socket.queue(Message::Ping(Bytes::new())).await?;
                }
                Beat::Dead => return Err(End::NoPong),
            },
        }
        self.set_alarm();
        Ok(())
    }

    /// Is woken for the next ping, or to cut a client that reads nothing. The ping of one that
    /// stalls from now on comes before its time to be cut.
    fn set_alarm(&mut self) {
        let next = match self.socket.stalled_since() {
            Some(since) => since + STALLED,
            None => self.heartbeat.next(),
        };
        self.waiter.wake_at(self.retry.into_iter().fold(next, Instant::min));
    }

    /// Pushes what has come, as far as the client takes it.
    async fn advance(&mut self) -> Result<(), End> {
        let (mailbox, now) = (self.claim.mailbox, self.state.clock.now());
        if self.claim.expires_at <= now {
            return Err(Refusal::InvalidToken.into());
        }
        if !self.unsure
            && let Some(recent) = self.waiter.recent(mailbox, self.position, self.behind)
            && recent.arrived.iter().all(|arrived| arrived.row.is_some())
        {
            self.behind = None;
            let rows = recent.arrived.iter().filter_map(|arrived| arrived.row.as_ref());
            let ours: Vec<&MessageRow> =
                rows.filter(|row| row.owner == mailbox && row.expires_at() > now).collect();
            return self.push(&ours, recent.up_to).await;
        }
        let scanned = self.state.store.scan_mailbox(mailbox, self.position, PAGE, now).await;
        let scan = match scanned {
            Err(error) if error.is_unavailable() => {
                self.retry = Some(Instant::now() + RETRY);
                self.set_alarm();
                return Ok(());
            }
            scanned => scanned.map_err(Refusal::from)?.ok_or(Refusal::InvalidToken)?,
        };
        check(&self.claim, scan.password_epoch, scan.suspended, now)?;
        self.unsure = false;
        if self.socket.is_sending() {
            // It only asked about its rights.
            return Ok(());
        }
        let last = scan.rows.last().filter(|_| scan.rows.len() >= usize::try_from(PAGE).unwrap_or(0));
        self.behind = last.map(|last| last.seq + 1);
        let up_to = last.map_or(scan.position, |last| last.seq);
        self.push(&scan.rows.iter().collect::<Vec<_>>(), up_to).await
    }

    /// Pushes messages up to a position of the stream.
    async fn push(&mut self, rows: &[&MessageRow], up_to: i64) -> Result<(), End> {
        for row in rows {
            let has_room = self.socket.queue(message::new_email(self.claim.mailbox, row)).await?;
            self.position = row.seq;
            if !has_room {
                self.behind = Some(row.seq + 1);
                return Ok(());
            }
        }
        self.position = self.position.max(up_to);
        Ok(())
    }
}
