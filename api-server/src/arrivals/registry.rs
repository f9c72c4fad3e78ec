//! Who is subscribed to what. A subscriber costs a signal and an entry per topic; it has no timer and no
//! queue of its own.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tempmail_model::message::Arrival;
use tokio::time::Instant;
use uuid::Uuid;

use super::ring::{ArrivedMessage, RecentArrivals, Ring};
use super::signal::{Notification, Signal};

/// What a subscriber is notified of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topic {
    /// Mail of one inbox: a mailbox, or the key of an exact address.
    Inbox(Uuid),
    /// Mail of one tenant: to its mailboxes, and to every address under its custom domains.
    Tenant(Uuid),
    /// A change of what the right to read depends on: a tenant, token, mailbox, domain, or the key of
    /// an address that may become a mailbox.
    Rights(Uuid),
}

impl Topic {
    /// The topics whose subscribers are notified of an arrival.
    pub(super) fn of(arrival: &Arrival) -> impl Iterator<Item = Self> {
        [Some(Self::Inbox(arrival.inbox)), arrival.tenant.map(Self::Tenant)].into_iter().flatten()
    }
}

/// How long a request may take from reading its rights to subscribing to their changes.
const CHANGE_RETENTION: Duration = Duration::from_secs(10);

/// All subscribers of a process, and what recently arrived for them.
#[derive(Debug)]
pub(super) struct Registry {
    entries: Mutex<Entries>,
    ring: Mutex<Ring>,
}

/// The subscribers, by number and by topic.
#[derive(Debug, Default)]
pub(super) struct Entries {
    last_number: u64,
    draining: bool,
    all: BTreeMap<u64, Arc<Signal>>,
    by_topic: BTreeMap<(Topic, u64), Arc<Signal>>,
    pub(super) timers: Timers,
    /// When the rights of a subject last changed.
    changed: HashMap<Uuid, Instant>,
    /// When the rights of any subject may have changed.
    all_changed: Option<Instant>,
}

impl Entries {
    fn subscribed_to(&self, topic: Topic) -> impl Iterator<Item = &Arc<Signal>> {
        self.by_topic.range((topic, 0)..=(topic, u64::MAX)).map(|(_, signal)| signal)
    }

    /// Whether the rights of a subject changed after a request may have read them.
    pub(super) fn changed_recently(&self, subject: Uuid) -> bool {
        let changed = self.changed.get(&subject).into_iter().chain(&self.all_changed);
        changed.max().is_some_and(|at| at.elapsed() <= CHANGE_RETENTION)
    }

    /// Subscribes to a topic; `false` where the subscriber is subscribed already.
    pub(super) fn subscribe(&mut self, topic: Topic, number: u64, signal: &Arc<Signal>) -> bool {
        self.by_topic.insert((topic, number), Arc::clone(signal)).is_none()
    }

    pub(super) fn unsubscribe(&mut self, topic: Topic, number: u64) {
        self.by_topic.remove(&(topic, number));
    }

    pub(super) fn remove(&mut self, number: u64) {
        self.all.remove(&number);
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty() && self.by_topic.is_empty() && self.timers.is_empty()
    }
}

impl Registry {
    pub(super) fn new() -> Self {
        Self { entries: Mutex::default(), ring: Mutex::new(Ring::new(0)) }
    }

    /// Adds a subscriber: its number and signal.
    pub(super) fn add(&self) -> (u64, Arc<Signal>) {
        let mut entries = self.entries();
        entries.last_number += 1;
        let (number, signal) = (entries.last_number, Arc::new(Signal::new()));
        entries.all.insert(number, Arc::clone(&signal));
        if entries.draining {
            signal.notify(Notification::Drain);
        }
        (number, signal)
    }

    /// Whether an arrival has a subscriber, so that its row is needed.
    pub(super) fn has_subscriber(&self, arrival: &Arrival) -> bool {
        let entries = self.entries();
        Topic::of(arrival).any(|topic| entries.subscribed_to(topic).next().is_some())
    }

    /// Stores the next messages of the stream, up to position `up_to`, and notifies their subscribers.
    pub(super) fn publish(&self, messages: Vec<ArrivedMessage>, up_to: i64) {
        let arrivals: Vec<Arrival> = messages.iter().map(|message| message.arrival).collect();
        // The ring comes first, so that a notified subscriber finds the message in it. It stays locked
        // until all are notified: a subscriber that sees the ring advance has its notifications.
        let mut ring = lock(&self.ring);
        ring.push(messages, up_to);
        let entries = self.entries();
        for arrival in &arrivals {
            for signal in Topic::of(arrival).flat_map(|topic| entries.subscribed_to(topic)) {
                signal.notify(Notification::Arrived(arrival.seq));
            }
        }
    }

    /// Restarts the ring after `position` where it is unknown what arrived before: every subscriber
    /// reads the store.
    pub(super) fn restart_after(&self, position: i64) {
        let mut ring = lock(&self.ring);
        *ring = Ring::new(position);
        for signal in self.entries().all.values() {
            signal.notify(Notification::Arrived(0));
        }
    }

    /// Has the subscribers check their rights that depend on any of these subjects, now or soon.
    pub(super) fn rights_changed(&self, subjects: &[Uuid]) {
        let mut entries = self.entries();
        entries.changed.retain(|_, at| at.elapsed() <= CHANGE_RETENTION);
        let now = Instant::now();
        entries.changed.extend(subjects.iter().map(|subject| (*subject, now)));
        for signal in subjects.iter().flat_map(|subject| entries.subscribed_to(Topic::Rights(*subject))) {
            signal.notify(Notification::Recheck);
        }
    }

    /// Has all subscribers check their rights: it is unknown what changed.
    pub(super) fn all_rights_changed(&self) {
        let mut entries = self.entries();
        entries.all_changed = Some(Instant::now());
        for signal in entries.all.values() {
            signal.notify(Notification::Recheck);
        }
    }

    /// Notifies the subscribers whose time has come.
    pub(super) fn fire_due(&self, now: Instant, business: Timestamp) {
        self.entries().timers.fire_due(now, business);
    }

    /// From now on new subscribers are notified of the drain at once; present ones by
    /// [`drain_next`](Self::drain_next). Returns how many to notify per tick.
    pub(super) fn begin_drain(&self) -> usize {
        let mut entries = self.entries();
        entries.draining = true;
        drain_batch(entries.all.len())
    }

    /// Notifies the next `max` subscribers after `number` of the drain. Returns the last one that was
    /// notified, `None` after all of them.
    pub(super) fn drain_next(&self, number: u64, max: usize) -> Option<u64> {
        let entries = self.entries();
        let batch = entries.all.range(number + 1..).take(max);
        batch
            .map(|(number, signal)| {
                signal.notify(Notification::Drain);
                *number
            })
            .last()
    }

    /// The number of subscribers.
    pub(super) fn len(&self) -> usize {
        self.entries().all.len()
    }

    /// What arrived under `key` (an inbox or a tenant) after `reached`, for the subscriber with this
    /// signal; see [`Ring::recent`].
    pub(super) fn recent(
        &self,
        signal: &Signal,
        key: Uuid,
        reached: i64,
        first: Option<i64>,
    ) -> Option<RecentArrivals> {
        let ring = lock(&self.ring);
        // More may have been notified since: the ring may no longer have all of that.
        let first = first.into_iter().chain(signal.pending_arrival()).min();
        ring.recent(key, reached, first)
    }

    pub(super) fn entries(&self) -> MutexGuard<'_, Entries> {
        lock(&self.entries)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No foreign code runs under the lock: a panic elsewhere leaves the data consistent.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Time between two ticks: how late a subscriber may be notified.
pub(super) const TICK: Duration = Duration::from_millis(100);
/// Over how long the subscribers of a draining process are notified, so that their clients do not all
/// connect to another process at once.
const DRAIN_SPREAD: Duration = Duration::from_secs(8);
/// Subscribers that are notified of the drain per tick, at least.
const DRAIN_BATCH_MIN: usize = 100;

/// One timer for all subscribers: when to notify which of them; entries are by the subscriber's number.
#[derive(Debug, Default)]
pub(super) struct Timers {
    due: BTreeMap<(Instant, u64), Arc<Signal>>,
    /// By business time: when the right to read expires.
    expiring: BTreeMap<(Timestamp, u64), Arc<Signal>>,
}

impl Timers {
    pub(super) fn schedule(&mut self, at: Instant, number: u64, signal: &Arc<Signal>) {
        self.due.insert((at, number), Arc::clone(signal));
    }

    pub(super) fn cancel(&mut self, at: Instant, number: u64) {
        self.due.remove(&(at, number));
    }

    pub(super) fn schedule_expiry(&mut self, at: Timestamp, number: u64, signal: &Arc<Signal>) {
        self.expiring.insert((at, number), Arc::clone(signal));
    }

    pub(super) fn cancel_expiry(&mut self, at: Timestamp, number: u64) {
        self.expiring.remove(&(at, number));
    }

    /// Notifies the subscribers whose time has come.
    pub(super) fn fire_due(&mut self, now: Instant, business: Timestamp) {
        let later = self.due.split_off(&(now + Duration::from_nanos(1), 0));
        for signal in std::mem::replace(&mut self.due, later).into_values() {
            signal.notify(Notification::Due);
        }
        while let Some(entry) = self.expiring.first_entry()
            && entry.key().0 <= business
        {
            entry.remove().notify(Notification::Recheck);
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.due.is_empty() && self.expiring.is_empty()
    }
}

/// How many of `subscribers` to notify per tick of a drain.
pub(super) fn drain_batch(subscribers: usize) -> usize {
    let ticks = usize::try_from(DRAIN_SPREAD.as_millis() / TICK.as_millis()).unwrap_or(usize::MAX);
    subscribers.div_ceil(ticks).max(DRAIN_BATCH_MIN)
}
