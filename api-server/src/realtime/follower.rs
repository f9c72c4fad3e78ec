//! Follows the stream of messages for one reader: a long-poll, a wait for one mail, an event stream or a WebSocket.
//!
//! The follower alone decides what its reader may be given: it knows the position and its generation, the right to read
//! and when that ends, and whether what it knows of all this is too old. Messages come from the ring of recent arrivals, or
//! from the store: where the ring is not enough, where the right to read may have changed, and while the process does not
//! know whether it has ([`Arrivals::is_stale`](crate::arrivals::Arrivals::is_stale)).

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use jiff::Timestamp;
use tempmail_runtime::traces::{Stage, StageTimer};
use tempmail_store::{MessageRow, ScanRange, ScanRequest};
use tokio::time::Instant;
use uuid::Uuid;

use crate::arrivals::{ArrivedMessage, Notifications, Position, STALE_AFTER, Subscriber, Topic};
use crate::http::error::ApiError;
use crate::state::AppState;

/// Pause of a stream after the store was unavailable.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// If the reader asks for more only after this time, messages in the ring may have been deleted: the store is read instead.
const RING_MAX_AGE: Duration = Duration::from_secs(2);

/// Whose mail a follower gives, and by which right.
pub(crate) trait MailSource {
    /// What announces the mail, and changes of the right to read it, as far as it is known before the next read.
    fn topics(&self) -> Vec<Topic>;

    /// When the right to read expires.
    fn expires_at(&self) -> Option<Timestamp>;

    /// Where the ring has the mail; `None` before the first read.
    fn ring_key(&self) -> Option<RingKey>;

    /// Whether a message that was read is part of the mail.
    fn covers(&self, row: &MessageRow) -> bool;

    /// Checks whether the credential is still accepted.
    ///
    /// # Errors
    /// What the reader is told; Postgres is unavailable.
    fn recheck(&mut self, state: &AppState) -> impl Future<Output = Result<(), ApiError>> + Send;

    /// Reads messages from the store, which also decides whether the reader may have them.
    ///
    /// # Errors
    /// What the reader is told; Postgres is unavailable.
    fn read(
        &mut self,
        state: &AppState,
        scan: ScanRequest,
    ) -> impl Future<Output = Result<SourcePage, ApiError>> + Send;
}

/// What finds mail in the ring.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RingKey {
    /// An inbox or a tenant.
    pub(crate) key: Uuid,
    /// Only mail of this owner, if there are other ones under the same key.
    pub(crate) owner: Option<Uuid>,
}

/// What a read of the store met.
#[derive(Debug)]
pub(crate) struct SourcePage {
    /// In the order of the range.
    pub(crate) rows: Vec<MessageRow>,
    /// The end of the stream: every message up to it was considered, unless the page is full.
    pub(crate) position: i64,
    /// The generation that is current in the store.
    pub(crate) generation: Uuid,
    /// Whether the messages belong to another owner than those of the page before.
    pub(crate) owner_changed: bool,
}

/// Where a follower begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// After this position.
    After(Position),
    /// With the messages that there are, the newest first; then with those that arrive.
    Newest,
    /// With what arrives from now on.
    Now,
}

/// What a follower does while Postgres is unavailable, and when the process drains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// It fails, so that the client repeats its request, and it first gives what there is before it drains.
    Request,
    /// It goes on a second later, and it drains at once.
    Stream,
}

/// What happens next.
#[derive(Debug)]
pub(crate) enum Followed {
    /// Messages.
    Batch(Batch),
    /// The time that was scheduled has come.
    Due,
    /// The process drains: have the client send its next request to another one.
    Drain,
    /// The reader may no longer read, or, for a [`Patience::Request`], Postgres is unavailable.
    Lost(ApiError),
}

/// Messages that the reader may have now.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    read: Vec<MessageRow>,
    recent: Vec<Arc<ArrivedMessage>>,
    /// Whether they are older than all before them, and the newest of them is the first ([`Start::Newest`]); otherwise they
    /// are in the order of the stream.
    pub(crate) older: bool,
    /// Whether what was given before no longer counts: a generation of the stream began, or the mail has another owner.
    pub(crate) anew: bool,
    /// Everything up to here was given before.
    pub(crate) after: i64,
    /// Whether there is nothing more now.
    pub(crate) at_end: bool,
    /// Rows of the store that were read for it.
    pub(crate) rows_read: i64,
    /// The highest position of a message that was considered.
    pub(crate) highest: Option<i64>,
    /// Runs since the follower was notified; `None` for what there was before it waited.
    pub(crate) timer: Option<StageTimer>,
}

impl Batch {
    /// The messages, in their order.
    pub(crate) fn messages(&self) -> impl Iterator<Item = &MessageRow> {
        self.read.iter().chain(self.recent.iter().filter_map(|message| message.row.as_ref()))
    }

    /// Whether the reader has to know of it.
    fn is_news(&self) -> bool {
        self.anew || self.rows_read > 0 || !self.recent.is_empty()
    }
}

/// What a follower does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Find the end of the stream.
    FindEnd,
    /// Read the messages before this position, the newest first.
    ReadBack(i64),
    /// Read the messages after the position.
    Read,
    /// Wait, then read the ring.
    Wait,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Follower<S> {
    source: S,
    subscriber: Subscriber,
    patience: Patience,
    /// Only messages that were accepted in this millisecond or later are read from the store.
    accepted_since: Option<Timestamp>,
    /// Everything up to here was given.
    position: Position,
    step: Step,
    /// Whether the messages that there are come first, in each generation of the stream.
    from_newest: bool,
    /// What was notified and is not done yet.
    pending: Notifications,
    anew: bool,
    has_waited: bool,
    due_at: Option<Instant>,
    /// When to read the store again after it was unavailable.
    retry_at: Option<Instant>,
    /// When the reader was last given something, until it asks for more.
    given_at: Option<Instant>,
}

impl<S: MailSource> Follower<S> {
    /// Subscribes to what is known of the mail of `source` before the first read.
    pub(crate) fn new(
        state: &AppState,
        subscriber: Subscriber,
        source: S,
        start: Start,
        patience: Patience,
    ) -> Self {
        let oldest = state.arrivals.generations().oldest();
        let (position, step) = match start {
            Start::After(position) => (position, Step::Read),
            Start::Newest => (oldest, Step::ReadBack(i64::MAX)),
            Start::Now => (oldest, Step::FindEnd),
        };
        let mut follower = Self {
            source,
            subscriber,
            patience,
            accepted_since: None,
            position,
            step,
            from_newest: start == Start::Newest,
            pending: Notifications::default(),
            anew: false,
            has_waited: false,
            due_at: None,
            retry_at: None,
            given_at: None,
        };
        follower.subscriber.schedule_expiry(follower.source.expires_at());
        follower.subscribe();
        follower
    }

    /// The same, for messages that were accepted at `since` or later; the ring may give earlier ones, too.
    pub(crate) fn accepted_since(self, since: Option<Timestamp>) -> Self {
        Self { accepted_since: since, ..self }
    }

    /// The source.
    pub(crate) fn source(&self) -> &S {
        &self.source
    }

    /// Everything up to here was given.
    pub(crate) fn position(&self) -> Position {
        self.position
    }

    /// Has [`Followed::Due`] returned at `at`, in place of the time that was scheduled before.
    pub(crate) fn schedule(&mut self, at: Instant) {
        self.due_at = Some(at);
        self.schedule_timer();
    }

    /// Goes on after `seq`: the reader did not take the rest of the batch.
    pub(crate) fn continue_after(&mut self, seq: i64) {
        self.position.seq = seq;
        self.step = Step::Read;
    }

    /// The first messages, at most `most`, or none where it begins now. It waits for nothing.
    ///
    /// # Errors
    /// The reader may not read; Postgres is unavailable.
    pub(crate) async fn first(&mut self, state: &AppState, most: i64) -> Result<Batch, ApiError> {
        self.read(state, most).await
    }

    /// What happens next; of what there is in the store, at most `most` messages.
    pub(crate) async fn next(&mut self, state: &AppState, most: i64) -> Followed {
        loop {
            self.notified(most).await;
            // Boxed: a follower that waits does not keep the memory that reading needs.
            if let Some(followed) = Box::pin(self.advance(state, most)).await {
                return followed;
            }
        }
    }

    /// Waits until there is something to do for a reader that takes at most `most` messages; with 0 there is nothing to
    /// read, but rights, times and drains. May be cancelled.
    pub(crate) async fn notified(&mut self, most: i64) {
        let is_late = self.given_at.take().is_some_and(|at| at.elapsed() > RING_MAX_AGE);
        if is_late && self.step == Step::Wait {
            self.step = Step::Read;
        }
        let notified = if self.has_work(most) {
            self.subscriber.notified().now_or_never().unwrap_or_default()
        } else {
            self.has_waited = true;
            self.subscriber.notified().await
        };
        self.pending.arrived = self.pending.arrived.into_iter().chain(notified.arrived).min();
        self.pending.recheck |= notified.recheck;
        self.pending.drain |= notified.drain;
    }

    /// Does what [`notified`](Self::notified) has found to do, and returns what the reader has to know of it.
    pub(crate) async fn advance(&mut self, state: &AppState, most: i64) -> Option<Followed> {
        let timer = self.has_waited.then(|| StageTimer::start(Stage::Answer));
        if self.retry_at.is_some() && !self.is_paused() {
            self.retry_at = None;
            self.schedule_timer();
        }
        let (due, drain) = (self.is_due(), self.pending.drain);
        let ends = match self.patience {
            // Postgres may be silent: who has to answer does not wait for it.
            Patience::Request => (due || drain) && self.has_waited && state.arrivals.is_stale(),
            Patience::Stream => drain,
        };
        if !ends && !self.is_paused() {
            match self.read(state, most).await {
                Ok(batch) if batch.is_news() => {
                    self.given_at = Some(Instant::now());
                    return Some(Followed::Batch(Batch { timer, ..batch }));
                }
                Ok(_) => {}
                Err(ApiError::Unavailable | ApiError::Internal) if self.patience == Patience::Stream => {
                    self.retry_at = Some(Instant::now() + RETRY_DELAY);
                    self.schedule_timer();
                }
                Err(error) => return Some(Followed::Lost(error)),
            }
        }
        if drain {
            return Some(Followed::Drain);
        }
        due.then(|| {
            self.due_at = None;
            Followed::Due
        })
    }

    /// What `judgement` says, with a credential that is still accepted.
    ///
    /// # Errors
    /// The reader may no longer read; Postgres is unavailable, or took so long that what it said may no longer hold.
    pub(crate) async fn judge_anew<T>(
        &mut self,
        state: &AppState,
        judgement: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, ApiError> {
        let began = Instant::now();
        self.recheck(state).await?;
        let judged = judgement.await?;
        in_time(began)?;
        Ok(judged)
    }

    /// Those of these messages, which were given before, that the reader may still have.
    ///
    /// # Errors
    /// As [`judge_anew`](Self::judge_anew).
    pub(crate) async fn confirm(
        &mut self,
        state: &AppState,
        messages: &[MessageRow],
    ) -> Result<Vec<Uuid>, ApiError> {
        let began = Instant::now();
        self.recheck(state).await?;
        let page = self.read_source(state, ScanRequest::new(ScanRange::After(i64::MAX), 1)).await?;
        if self.subscribe() && self.step == Step::Wait {
            self.step = Step::Read;
        }
        let kept = if page.owner_changed {
            Vec::new()
        } else {
            state.stream_store.filter_visible_messages(messages, state.clock.now()).await?
        };
        in_time(began)?;
        Ok(kept)
    }

    fn has_work(&self, most: i64) -> bool {
        let may_read = !self.is_paused() && most > 0;
        let has_mail = self.step != Step::Wait || self.pending.arrived.is_some();
        self.pending.drain
            || self.is_due()
            || (self.pending.recheck && !self.is_paused())
            || (may_read && has_mail)
    }

    fn is_due(&self) -> bool {
        self.due_at.is_some_and(|at| at <= Instant::now())
    }

    /// Whether the store is left alone, since it was unavailable.
    fn is_paused(&self) -> bool {
        self.retry_at.is_some_and(|at| at > Instant::now())
    }

    fn schedule_timer(&mut self) {
        let next = self.due_at.into_iter().chain(self.retry_at).min();
        if let Some(at) = next {
            self.subscriber.schedule(at);
        }
    }

    /// Subscribes to the topics that are known now; `true` where mail of some was not subscribed to, so that what arrived
    /// of it until now was not notified.
    fn subscribe(&mut self) -> bool {
        self.subscriber.subscribe(self.source.topics())
    }

    async fn read(&mut self, state: &AppState, most: i64) -> Result<Batch, ApiError> {
        self.begin_anew(state);
        self.pending.recheck |= state.arrivals.is_stale();
        if !self.pending.recheck && self.step == Step::Wait {
            if most == 0 {
                return Ok(Batch::default());
            }
            if let Some(batch) = self.read_recent(state) {
                return Ok(batch);
            }
        }
        self.read_store(state, most).await
    }

    /// Goes on in the current generation of the stream, where another one began.
    fn begin_anew(&mut self, state: &AppState) {
        let Some(renewed) = state.arrivals.generations().renew(self.position) else { return };
        self.position = renewed;
        self.anew = true;
        self.pending.recheck = true;
        match self.step {
            Step::FindEnd => {}
            _ if self.from_newest => self.step = Step::ReadBack(i64::MAX),
            _ => self.step = Step::Read,
        }
    }

    /// What the ring has; `None` where the store has to be read.
    fn read_recent(&mut self, state: &AppState) -> Option<Batch> {
        let RingKey { key, owner } = self.source.ring_key()?;
        let recent = self.subscriber.recent(key, self.position.seq, self.pending.arrived)?;
        let (mut messages, now, after) = (recent.messages, state.clock.now(), self.position.seq);
        messages.retain(|message| owner.is_none_or(|owner| message.arrival.owner == owner));
        if messages.iter().any(|message| message.row.is_none()) {
            return None;
        }
        let is_given = |row: &MessageRow| self.source.covers(row) && row.expires_at() > now;
        messages.retain(|message| message.row.as_ref().is_some_and(is_given));
        self.pending.arrived = None;
        self.position.seq = self.position.seq.max(recent.up_to);
        let highest = messages.last().map(|message| message.arrival.seq);
        Some(Batch { recent: messages, after, at_end: true, highest, ..Batch::default() })
    }

    async fn read_store(&mut self, state: &AppState, most: i64) -> Result<Batch, ApiError> {
        let (began, rechecks) = (Instant::now(), self.pending.recheck);
        if rechecks {
            self.recheck(state).await?;
        }
        let range = match self.step {
            Step::FindEnd => ScanRange::After(i64::MAX),
            Step::ReadBack(before) => ScanRange::Before(before),
            Step::Read | Step::Wait => ScanRange::After(self.position.seq),
        };
        let limit = most.max(1);
        let scan = ScanRequest { accepted_since: self.accepted_since, ..ScanRequest::new(range, limit) };
        let page = self.read_source(state, scan).await?;
        // The rights that were judged may have ended meanwhile.
        let judged_late = in_time(began).is_err() || (!rechecks && state.arrivals.is_stale());
        if judged_late && !page.rows.is_empty() {
            return Err(ApiError::Unavailable);
        }
        self.pending.recheck = judged_late;
        // Earlier arrivals under a new topic were not notified.
        let subscribed = !self.subscribe();
        if most == 0 && self.step != Step::FindEnd {
            // Only the rights were to be checked.
            self.step = Step::Read;
            return Ok(Batch::default());
        }
        Ok(self.take(page, limit, subscribed))
    }

    /// Moves on by a page of at most `limit` rows. Where all later arrivals are notified (`subscribed`), its end may be
    /// waited at.
    fn take(&mut self, page: SourcePage, limit: i64, subscribed: bool) -> Batch {
        let SourcePage { mut rows, position, owner_changed, .. } = page;
        self.anew |= owner_changed;
        let rows_read = i64::try_from(rows.len()).unwrap_or(i64::MAX);
        let (first, last) = (rows.first().map(|row| row.seq), rows.last().map(|row| row.seq));
        let at_end = rows_read < limit;
        if self.step == Step::FindEnd {
            self.position.seq = position;
        }
        let (older, after) = (matches!(self.step, Step::ReadBack(_)), self.position.seq);
        let next_step = if at_end && subscribed { Step::Wait } else { Step::Read };
        self.step = match self.step {
            Step::FindEnd => next_step,
            Step::ReadBack(before) if owner_changed && before < i64::MAX => {
                rows.clear();
                Step::ReadBack(i64::MAX)
            }
            Step::ReadBack(before) => {
                let is_first = before == i64::MAX;
                if is_first {
                    self.position.seq = first.map_or(position, |newest| newest.max(position));
                }
                match last {
                    Some(oldest) if !at_end => Step::ReadBack(oldest),
                    _ if is_first => next_step,
                    // What arrived while the earlier pages were read was perhaps not notified.
                    _ => Step::Read,
                }
            }
            Step::Read | Step::Wait => {
                let reached = last.into_iter().chain(at_end.then_some(position));
                self.position.seq = reached.fold(self.position.seq, i64::max);
                if at_end {
                    self.pending.arrived = None;
                }
                next_step
            }
        };
        rows.retain(|row| self.source.covers(row));
        let anew = std::mem::take(&mut self.anew);
        Batch {
            read: rows,
            older,
            anew,
            after,
            at_end,
            rows_read,
            highest: first.max(last),
            ..Batch::default()
        }
    }

    async fn recheck(&mut self, state: &AppState) -> Result<(), ApiError> {
        self.source.recheck(state).await?;
        self.subscriber.schedule_expiry(self.source.expires_at());
        Ok(())
    }

    /// A page of the generation that the position belongs to.
    async fn read_source(&mut self, state: &AppState, scan: ScanRequest) -> Result<SourcePage, ApiError> {
        let page = self.source.read(state, scan).await;
        if let Err(ApiError::NotFound) = page {
            // A tenant that is deleted loses both: its token is reported first, whenever it was checked.
            self.recheck(state).await?;
        }
        let page = page?;
        if !state.arrivals.generations().is(self.position.generation, page.generation) {
            return Err(ApiError::Unavailable);
        }
        Ok(page)
    }
}

/// Whether rights that were judged from `began` on may be relied on.
///
/// # Errors
/// [`ApiError::Unavailable`]: they may have ended meanwhile.
fn in_time(began: Instant) -> Result<(), ApiError> {
    if began.elapsed() > STALE_AFTER { Err(ApiError::Unavailable) } else { Ok(()) }
}
