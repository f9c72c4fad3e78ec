//! Follows the stream in its order: by the hints of the bus, and by polling the store, which finds
//! messages whose hint was lost, and changes of rights.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tempmail_bus::ArrivalReceiver;
use tempmail_model::clock::Clock;
use tempmail_model::message::Arrival;
use tempmail_model::retention::RetentionClass;
use tempmail_runtime::last_success::LastSuccess;
use tempmail_runtime::liveness::TaskPulse;
use tempmail_runtime::readiness::Readiness;
use tempmail_runtime::traces::{AttributeValue, Stage, StageTimer};
use tempmail_store::{CHANGE_RETENTION, ChangeSnapshot, MessageRow, Store, StoreError};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use super::STALE_AFTER;
use super::generations::Generations;
use super::registry::Registry;
use super::ring::ArrivedMessage;
use super::sequence::Sequence;

/// Time between two polls of the store: how long a mail without a hint, or a change of rights, may go
/// unnoticed.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How long a missing hint may take from another process before the store is polled.
const GAP_DELAY: Duration = Duration::from_millis(20);
/// Widest gap that is read; beyond it, every subscriber reads the store.
const GAP_MAX: i64 = 50_000;
/// Oldest gap that is read; beyond it, every subscriber reads the store.
const GAP_AGE_MAX: SignedDuration = SignedDuration::from_mins(10);
/// How much older than its commit a message usually is at most: it waited for the database.
const COMMIT_DELAY: SignedDuration = SignedDuration::from_mins(5);
/// How long a statement may take: so short that a connection that falls silent is replaced before the process is stale.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(3);

const COMPONENT: &str = "arrivals";

/// How the tailer learned of arrivals, and since when it is at them.
#[derive(Debug, Clone, Copy)]
struct Discovery {
    by: &'static str,
    timer: StageTimer,
}

impl Discovery {
    fn by_hint() -> Self {
        Self { by: "hint", timer: StageTimer::start(Stage::Hint) }
    }

    fn by_poll() -> Self {
        Self { by: "poll", timer: StageTimer::start(Stage::Hint) }
    }
}

/// Reads the stream and publishes what arrives to the registry.
pub(super) struct Tailer {
    store: Store,
    hints: ArrivalReceiver,
    clock: Arc<dyn Clock>,
    readiness: Readiness,
    /// Whether the process was reported as not ready.
    reported_stale: bool,
    pulse: TaskPulse,
    /// Dropped with the state that subscribers register with; then the tailer ends.
    registry: Weak<Registry>,
    /// `None` before the first poll.
    sequence: Option<Sequence>,
    /// Position of the stream at the last poll.
    polled_position: i64,
    /// What the last poll had seen of the feed of changes.
    snapshot: Option<ChangeSnapshot>,
    /// Business time of the last poll, for the age of a gap.
    polled_at: Timestamp,
    /// The last poll.
    last_poll: LastSuccess,
    generations: Arc<Generations>,
}

impl Tailer {
    pub(super) fn new(
        store: &Store,
        hints: ArrivalReceiver,
        clock: Arc<dyn Clock>,
        readiness: Readiness,
        last_poll: LastSuccess,
        generations: Arc<Generations>,
        registry: Weak<Registry>,
    ) -> Self {
        readiness.set_not_ready(COMPONENT, "the stream has not been read yet");
        let polled_at = clock.now();
        Self {
            store: store.within(STATEMENT_TIMEOUT),
            hints,
            clock,
            pulse: readiness.liveness().watch(COMPONENT),
            readiness,
            reported_stale: true,
            registry,
            sequence: None,
            polled_position: 0,
            snapshot: None,
            polled_at,
            last_poll,
            generations,
        }
    }

    /// Runs until the registry is dropped.
    pub(super) async fn run(mut self) {
        let mut next_poll = Instant::now();
        loop {
            tokio::select! {
                hint = self.hints.recv() => match (hint, self.registry.upgrade()) {
                    (Ok(arrivals), Some(registry)) => {
                        let _work = self.pulse.begin();
                        let discovery = Discovery::by_hint();
                        self.record(&arrivals);
                        self.receive_pending_hints();
                        self.publish_contiguous(&registry, discovery).await;
                        if arrivals.is_empty() {
                            next_poll = Instant::now();
                        } else if self.sequence.as_ref().is_some_and(Sequence::has_gap) {
                            // Further hints do not delay the poll.
                            next_poll = next_poll.min(Instant::now() + GAP_DELAY);
                        }
                    }
                    // Lost hints are a gap: close it now rather than at the next poll.
                    (Err(RecvError::Lagged(_)), Some(_)) => next_poll = Instant::now(),
                    (Err(RecvError::Closed), _) | (_, None) => return,
                },
                () = sleep_until(next_poll) => match self.registry.upgrade() {
                    Some(registry) => {
                        self.poll(&registry).await;
                        next_poll = Instant::now() + POLL_INTERVAL;
                    }
                    None => return,
                },
            }
        }
    }

    fn record(&mut self, arrivals: &[Arrival]) {
        if let Some(sequence) = &mut self.sequence {
            for arrival in arrivals {
                sequence.record(*arrival);
            }
        }
    }

    /// Records all hints that are queued.
    fn receive_pending_hints(&mut self) {
        loop {
            match self.hints.try_recv() {
                Ok(arrivals) => self.record(&arrivals),
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }

    /// Publishes what follows in the stream without a gap.
    async fn publish_contiguous(&mut self, registry: &Registry, discovery: Discovery) {
        let Some(sequence) = &mut self.sequence else { return };
        let arrivals = sequence.take_contiguous();
        if !arrivals.is_empty() {
            let up_to = sequence.taken();
            self.publish(registry, arrivals, up_to, discovery).await;
        }
    }

    async fn poll(&mut self, registry: &Registry) {
        let _work = self.pulse.begin();
        match self.catch_up(registry).await {
            Ok(()) => {
                if std::mem::take(&mut self.reported_stale) {
                    self.readiness.set_ready(COMPONENT);
                }
            }
            Err(error) => {
                if self.last_poll.age() > STALE_AFTER && !std::mem::replace(&mut self.reported_stale, true) {
                    tracing::warn!(%error, "the stream can't be read");
                    self.readiness.set_not_ready(COMPONENT, format!("the stream can't be read: {error}"));
                }
            }
        }
    }

    /// Publishes everything up to the current end of the stream, and what changed.
    async fn catch_up(&mut self, registry: &Registry) -> Result<(), StoreError> {
        let (now, began) = (self.clock.now(), Instant::now());
        // Rows of the feed of changes may have been deleted by now: then it is unknown what changed.
        let changes_lost = self.last_poll.age() > CHANGE_RETENTION / 2;
        let last = if changes_lost { None } else { self.snapshot.as_ref() };
        let head = self.store.poll_stream(last).await?;
        let began_anew = head.generation != self.generations.current_id();
        if began_anew {
            let generations = self.store.list_generations().await?;
            tracing::warn!(
                position = head.position,
                "the stream began anew: another server, or a restored database"
            );
            metrics::counter!("tempmail_stream_generations_total").increment(1);
            // In this order: whoever goes on in the new generation finds no mail of the former one in the ring.
            registry.restart_after(head.position);
            self.generations.replace(generations);
            self.sequence = None;
        }
        self.snapshot = Some(head.snapshot);
        if changes_lost || began_anew {
            registry.all_rights_changed();
        } else {
            registry.rights_changed(&head.changed);
        }
        // Only now: whoever sees that the poll is recent has been notified of what it found.
        self.last_poll.set(began);
        // Hints of recent commits may be queued: without them there would seem to be a gap.
        self.receive_pending_hints();
        self.publish_contiguous(registry, Discovery::by_hint()).await;
        self.close_gap(registry, head.position, now).await?;
        self.polled_at = now;
        Ok(())
    }

    /// Reads the messages without a hint, up to `position`.
    async fn close_gap(
        &mut self,
        registry: &Registry,
        position: i64,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        // The position went back: the database was restored.
        let went_back = position < std::mem::replace(&mut self.polled_position, position);
        let taken = self.sequence.as_ref().map(Sequence::taken).filter(|_| !went_back);
        if taken.is_some_and(|taken| taken >= position) {
            return Ok(());
        }
        let readable =
            |after: &i64| position - after <= GAP_MAX && now.duration_since(self.polled_at) <= GAP_AGE_MAX;
        let Some(after) = taken.filter(readable) else {
            self.sequence = Some(Sequence::new(position));
            registry.restart_after(position);
            return Ok(());
        };
        let discovery = Discovery::by_poll();
        metrics::counter!("tempmail_arrivals_repaired_total").increment((position - after).unsigned_abs());
        // A message that is not among the newest was deleted at once, or waited long for its commit.
        for since in [self.polled_at - COMMIT_DELAY, Timestamp::UNIX_EPOCH] {
            let missed = self.store.list_arrivals(after, position, since).await?;
            self.record(&missed);
            if self.sequence.as_ref().is_some_and(|sequence| sequence.is_complete_up_to(position)) {
                break;
            }
        }
        if let Some(sequence) = &mut self.sequence {
            let arrivals = sequence.take_up_to(position);
            self.publish(registry, arrivals, position, discovery).await;
        }
        self.publish_contiguous(registry, discovery).await;
        Ok(())
    }

    /// Publishes consecutive arrivals; their rows are read once for all subscribers. None where another generation began,
    /// as the next poll finds: subscribers then begin at its base.
    async fn publish(&self, registry: &Registry, arrivals: Vec<Arrival>, up_to: i64, discovery: Discovery) {
        let mut subscribed: BTreeMap<RetentionClass, Vec<Uuid>> = BTreeMap::new();
        for arrival in arrivals.iter().filter(|arrival| registry.has_subscriber(arrival)) {
            subscribed.entry(arrival.class).or_default().push(arrival.id);
        }
        let traced = discovery.timer.traced(subscribed.values().flatten().copied());
        let mut rows: HashMap<Uuid, MessageRow> = HashMap::new();
        for (class, ids) in subscribed {
            match self.store.list_messages_by_id(class, &ids).await {
                Ok(found) if found.generation != self.generations.current_id() => return,
                Ok(found) => rows.extend(found.rows.into_iter().map(|row| (row.id, row))),
                // Each subscriber then reads the store itself, and reports the error.
                Err(error) => {
                    tracing::debug!(%error, "arrivals were not read");
                }
            }
        }
        let messages = arrivals.into_iter().map(|arrival| {
            let row = rows.remove(&arrival.id).filter(|row| matches(&arrival, row));
            ArrivedMessage { row, arrival }
        });
        registry.publish(messages.collect(), up_to);
        let found_by = AttributeValue::Word(discovery.by);
        discovery.timer.end(traced, None, &[("tempmail.hint.found_by", found_by)]);
    }
}

/// Whether a row agrees with its arrival, by which the subscribers were found.
fn matches(arrival: &Arrival, row: &MessageRow) -> bool {
    let Arrival { seq, id, class, tenant, owner, inbox } = *arrival;
    (seq, id, class, tenant, owner, inbox) == (row.seq, row.id, row.class, row.tenant, row.owner, row.inbox)
}
