//! Follows the stream in its order: by the hints of the bus, and by a look at the store each tick,
//! so that nobody waits in vain for mail whose hint was lost, or keeps rights that have ended.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tempmail_bus::Hints;
use tempmail_model::clock::Clock;
use tempmail_model::message::Arrival;
use tempmail_model::retention::RetentionClass;
use tempmail_runtime::readiness::Readiness;
use tempmail_store::{CHANGE_RETENTION, ChangeSnapshot, MessageRow, Store, StoreError};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use super::registry::Registry;
use super::ring::Arrived;
use super::sequence::Sequence;

/// Time between two looks at the store: how long a mail without a hint, or a change of rights, may
/// go unseen.
const TICK: Duration = Duration::from_millis(200);
/// How long a missing hint may be on its way from another process before the store is asked.
const GAP_PATIENCE: Duration = Duration::from_millis(20);
/// A gap that is wider is not read: everybody reads the store instead.
const GAP_MAX: i64 = 50_000;
/// A gap that is older than this is not looked for among the newest messages.
const GAP_AGE_MAX: SignedDuration = SignedDuration::from_mins(10);
/// By how much a message is older than its commit at most, as a rule: it waited for the database.
const COMMIT_LATE: SignedDuration = SignedDuration::from_mins(5);
/// Without a look at the stream for so long, the process can't promise to see mail.
const BLIND_AFTER: Duration = Duration::from_secs(5);

const COMPONENT: &str = "arrivals";

/// See the module.
pub(super) struct Tailer {
    store: Store,
    hints: Hints,
    clock: Arc<dyn Clock>,
    readiness: Readiness,
    blind: Arc<AtomicBool>,
    /// Gone with the state that waiters come from; then there is nobody to wake.
    registry: Weak<Registry>,
    /// `None` until the stream was seen once.
    sequence: Option<Sequence>,
    /// Where the last look saw the stream.
    looked: i64,
    /// What the last look saw of the changes.
    snapshot: Option<ChangeSnapshot>,
    /// Business time of the last look, for the age of a gap.
    seen: Timestamp,
    /// Process time of the last look.
    seen_at: Instant,
}

impl Tailer {
    pub(super) fn new(
        store: Store,
        hints: Hints,
        clock: Arc<dyn Clock>,
        readiness: Readiness,
        blind: Arc<AtomicBool>,
        registry: Weak<Registry>,
    ) -> Self {
        readiness.missing(COMPONENT, "the stream was not read yet");
        let (seen, seen_at) = (clock.now(), Instant::now());
        Self {
            store,
            hints,
            clock,
            readiness,
            blind,
            registry,
            sequence: None,
            looked: 0,
            snapshot: None,
            seen,
            seen_at,
        }
    }

    /// Wakes waiters, as long as there can be some.
    pub(super) async fn run(mut self) {
        let mut next_look = Instant::now();
        loop {
            tokio::select! {
                hint = self.hints.recv() => match (hint, self.registry.upgrade()) {
                    (Ok(arrivals), Some(registry)) => {
                        self.told(&arrivals);
                        self.take_hints();
                        self.hand_on(&registry).await;
                        if arrivals.is_empty() {
                            next_look = Instant::now();
                        } else if self.sequence.as_ref().is_some_and(Sequence::has_gap) {
                            // Further hints do not put it off.
                            next_look = next_look.min(Instant::now() + GAP_PATIENCE);
                        }
                    }
                    // What was lost is a gap: it is found at once rather than with the tick.
                    (Err(RecvError::Lagged(_)), Some(_)) => next_look = Instant::now(),
                    (Err(RecvError::Closed), _) | (_, None) => return,
                },
                () = sleep_until(next_look) => match self.registry.upgrade() {
                    Some(registry) => {
                        self.look(&registry).await;
                        next_look = Instant::now() + TICK;
                    }
                    None => return,
                },
            }
        }
    }

    fn told(&mut self, arrivals: &[Arrival]) {
        if let Some(sequence) = &mut self.sequence {
            for arrival in arrivals {
                sequence.told(*arrival);
            }
        }
    }

    /// Takes all hints that are waiting.
    fn take_hints(&mut self) {
        loop {
            match self.hints.try_recv() {
                Ok(arrivals) => self.told(&arrivals),
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }

    /// Hands on what follows in the stream without a gap.
    async fn hand_on(&mut self, registry: &Registry) {
        let Some(sequence) = &mut self.sequence else { return };
        let run = sequence.take();
        if !run.is_empty() {
            let up_to = sequence.taken();
            self.arrived(registry, run, up_to).await;
        }
    }

    async fn look(&mut self, registry: &Registry) {
        match self.follow(registry).await {
            Ok(()) => {
                self.seen_at = Instant::now();
                if self.blind.swap(false, Ordering::Relaxed) {
                    self.readiness.ready(COMPONENT);
                }
            }
            Err(error) => {
                if self.seen_at.elapsed() > BLIND_AFTER && !self.blind.swap(true, Ordering::Relaxed) {
                    tracing::warn!(unavailable = error.is_unavailable(), "the stream can't be read");
                    self.readiness.missing(COMPONENT, "the stream can't be read: Postgres does not answer");
                }
            }
        }
    }

    /// Brings the waiters to where the stream stands now.
    async fn follow(&mut self, registry: &Registry) -> Result<(), StoreError> {
        let now = self.clock.now();
        // Rows of the feed may be forgotten by now: then nobody knows what changed.
        let forgotten = self.seen_at.elapsed() > CHANGE_RETENTION / 2;
        let last = if forgotten { None } else { self.snapshot.as_ref() };
        let head = self.store.poll_stream(last).await?;
        self.snapshot = Some(head.snapshot);
        if forgotten {
            registry.all_changed();
        } else {
            registry.changed(&head.changed);
        }
        // Hints of what was committed just before may be waiting: they are no gap.
        self.take_hints();
        self.hand_on(registry).await;
        self.close_gap(registry, head.position, now).await?;
        self.seen = now;
        Ok(())
    }

    /// Reads what no hint told of, up to `position`.
    async fn close_gap(
        &mut self,
        registry: &Registry,
        position: i64,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        // A stream that went back is another one: the database was restored.
        let went_back = position < std::mem::replace(&mut self.looked, position);
        let taken = self.sequence.as_ref().map(Sequence::taken).filter(|_| !went_back);
        if taken.is_some_and(|taken| taken >= position) {
            return Ok(());
        }
        let readable =
            |after: &i64| position - after <= GAP_MAX && now.duration_since(self.seen) <= GAP_AGE_MAX;
        let Some(after) = taken.filter(readable) else {
            self.sequence = Some(Sequence::new(position));
            registry.begin_after(position);
            return Ok(());
        };
        metrics::counter!("tempmail_arrivals_repaired_total").increment((position - after).unsigned_abs());
        // What is not among the newest was deleted at once, or waited for long before its commit.
        for since in [self.seen - COMMIT_LATE, Timestamp::UNIX_EPOCH] {
            let missed = self.store.list_arrivals(after, position, since).await?;
            self.told(&missed);
            if self.sequence.as_ref().is_some_and(|sequence| sequence.is_known_up_to(position)) {
                break;
            }
        }
        if let Some(sequence) = &mut self.sequence {
            let run = sequence.take_up_to(position);
            self.arrived(registry, run, position).await;
        }
        self.hand_on(registry).await;
        Ok(())
    }

    /// Wakes those who wait for a run of the stream, which is read once for all of them.
    async fn arrived(&self, registry: &Registry, run: Vec<Arrival>, up_to: i64) {
        let mut awaited: BTreeMap<RetentionClass, Vec<Uuid>> = BTreeMap::new();
        for arrival in run.iter().filter(|arrival| registry.is_awaited(arrival)) {
            awaited.entry(arrival.class).or_default().push(arrival.id);
        }
        let mut rows: HashMap<Uuid, MessageRow> = HashMap::new();
        for (class, ids) in awaited {
            match self.store.list_messages_by_id(class, &ids).await {
                Ok(found) => rows.extend(found.into_iter().map(|row| (row.id, row))),
                // Each waiter asks for itself, and says what it is told.
                Err(error) => {
                    tracing::debug!(unavailable = error.is_unavailable(), "arrivals were not read");
                }
            }
        }
        let run = run.into_iter().map(|arrival| {
            let row = rows.remove(&arrival.id).filter(|row| is_of(&arrival, row));
            Arrived { row, arrival }
        });
        registry.arrived(run.collect(), up_to);
    }
}

/// Whether the store says of a message what a hint told: who reads it is found by the hint.
fn is_of(arrival: &Arrival, row: &MessageRow) -> bool {
    let Arrival { seq, id, class, tenant, owner, inbox } = *arrival;
    (seq, id, class, tenant, owner, inbox) == (row.seq, row.id, row.class, row.tenant, row.owner, row.inbox)
}
