//! Who waits for what. A waiter costs a letter box and an entry a topic; it has no timer and no
//! queue of its own.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tempmail_model::message::Arrival;
use tokio::time::Instant;
use uuid::Uuid;

use super::ring::{Arrived, Recent, Ring};
use super::signal::{Signal, Wake, Woken};
use super::timer::{Timers, drained_per_tick};

/// How long a request may take from a look at its rights to listening for their changes.
const CHANGE_RETENTION: Duration = Duration::from_secs(10);

/// What a waiter is woken by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    /// Mail of one inbox: a mailbox, or the key of an exact address.
    Inbox(Uuid),
    /// Mail of one tenant: of its mailboxes, and of every address under its custom domains.
    Tenant(Uuid),
    /// A change of what it rests on: a tenant, token, mailbox, domain, or the key of an address
    /// that may become a mailbox.
    Rights(Uuid),
}

/// All waiters of a process, and what recently came for them.
#[derive(Debug)]
pub(super) struct Registry {
    waiting: Mutex<Waiting>,
    ring: Mutex<Ring>,
}

#[derive(Debug, Default)]
struct Waiting {
    last_number: u64,
    draining: bool,
    all: BTreeMap<u64, Arc<Signal>>,
    topics: BTreeMap<(Topic, u64), Arc<Signal>>,
    timers: Timers,
    /// When a subject changed last, or anything may have.
    changed: HashMap<Uuid, Instant>,
    all_changed: Option<Instant>,
}

impl Waiting {
    fn of(&self, topic: Topic) -> impl Iterator<Item = &Arc<Signal>> {
        self.topics.range((topic, 0)..=(topic, u64::MAX)).map(|(_, signal)| signal)
    }

    /// Whether a subject changed after a request may have looked at its rights.
    fn just_changed(&self, subject: Uuid) -> bool {
        let changed = self.changed.get(&subject).into_iter().chain(&self.all_changed);
        changed.max().is_some_and(|at| at.elapsed() <= CHANGE_RETENTION)
    }
}

impl Registry {
    pub(super) fn new() -> Self {
        Self { waiting: Mutex::default(), ring: Mutex::new(Ring::new(0)) }
    }

    pub(super) fn register(registry: &Arc<Self>) -> Waiter {
        let mut waiting = lock(&registry.waiting);
        waiting.last_number += 1;
        let (number, signal) = (waiting.last_number, Arc::new(Signal::new()));
        waiting.all.insert(number, Arc::clone(&signal));
        if waiting.draining {
            signal.wake(Wake::Drain);
        }
        drop(waiting);
        Waiter {
            number,
            signal,
            topics: Vec::new(),
            due: None,
            expires: None,
            registry: Arc::clone(registry),
        }
    }

    /// Whether somebody listens to an arrival, so that its row is of use.
    pub(super) fn is_awaited(&self, arrival: &Arrival) -> bool {
        let waiting = lock(&self.waiting);
        topics(arrival).any(|topic| waiting.of(topic).next().is_some())
    }

    /// What comes next in the stream, up to `up_to`: kept for those who listen, who are woken.
    pub(super) fn arrived(&self, run: Vec<Arrived>, up_to: i64) {
        let arrivals: Vec<Arrival> = run.iter().map(|arrived| arrived.arrival).collect();
        // First the ring: whoever is woken finds it there. It is held until all are told, so that
        // nobody sees it move on without being told of what was theirs.
        let mut ring = lock(&self.ring);
        ring.push(run, up_to);
        let waiting = lock(&self.waiting);
        for arrival in &arrivals {
            for signal in topics(arrival).flat_map(|topic| waiting.of(topic)) {
                signal.wake(Wake::Arrived(arrival.seq));
            }
        }
    }

    /// The stream goes on after `position`, and it is not known what came before: everybody reads
    /// the store.
    pub(super) fn begin_after(&self, position: i64) {
        let mut ring = lock(&self.ring);
        *ring = Ring::new(position);
        for signal in lock(&self.waiting).all.values() {
            signal.wake(Wake::Arrived(0));
        }
    }

    /// Has those look again who rest on any of these, or are about to.
    pub(super) fn changed(&self, subjects: &[Uuid]) {
        let mut waiting = lock(&self.waiting);
        waiting.changed.retain(|_, at| at.elapsed() <= CHANGE_RETENTION);
        let now = Instant::now();
        waiting.changed.extend(subjects.iter().map(|subject| (*subject, now)));
        for signal in subjects.iter().flat_map(|subject| waiting.of(Topic::Rights(*subject))) {
            signal.wake(Wake::Recheck);
        }
    }

    /// Has everybody look again: it is not known what changed.
    pub(super) fn all_changed(&self) {
        let mut waiting = lock(&self.waiting);
        waiting.all_changed = Some(Instant::now());
        for signal in waiting.all.values() {
            signal.wake(Wake::Recheck);
        }
    }

    /// Wakes those whose time has come.
    pub(super) fn tick(&self, now: Instant, business: Timestamp) {
        lock(&self.waiting).timers.ring(now, business);
    }

    /// From here on every new waiter is told to leave; those that are there are in their turn.
    /// Returns the pace: how many to tell a tick.
    pub(super) fn begin_drain(&self) -> usize {
        let mut waiting = lock(&self.waiting);
        waiting.draining = true;
        drained_per_tick(waiting.all.len())
    }

    /// Tells the next `most` waiters after `number` to leave; the last one that was told, `None`
    /// after all of them.
    pub(super) fn drain_after(&self, number: u64, most: usize) -> Option<u64> {
        let waiting = lock(&self.waiting);
        let turn = waiting.all.range(number + 1..).take(most);
        turn.map(|(number, signal)| {
            signal.wake(Wake::Drain);
            *number
        })
        .last()
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        lock(&self.waiting).all.len()
    }
}

/// What an arrival wakes.
fn topics(arrival: &Arrival) -> impl Iterator<Item = Topic> {
    [Some(Topic::Inbox(arrival.inbox)), arrival.tenant.map(Topic::Tenant)].into_iter().flatten()
}

/// One who waits; unregistered when dropped.
#[derive(Debug)]
pub struct Waiter {
    number: u64,
    signal: Arc<Signal>,
    topics: Vec<Topic>,
    due: Option<Instant>,
    expires: Option<Timestamp>,
    registry: Arc<Registry>,
}

impl Waiter {
    /// Waits until it is told something; what came since it last looked is kept.
    pub async fn woken(&self) -> Woken {
        self.signal.woken().await
    }

    /// Listens to exactly these topics from now on. `true` where mail of some of them was not
    /// listened to before: what arrived of it until now is to be read from the store. What changed
    /// just now of the rights among them is told.
    pub fn listen(&mut self, topics: Vec<Topic>) -> bool {
        let mut waiting = lock(&self.registry.waiting);
        let mut news = false;
        for topic in &topics {
            if waiting.topics.insert((*topic, self.number), Arc::clone(&self.signal)).is_some() {
                continue;
            }
            match topic {
                Topic::Inbox(_) | Topic::Tenant(_) => news = true,
                Topic::Rights(subject) if waiting.just_changed(*subject) => self.signal.wake(Wake::Recheck),
                Topic::Rights(_) => {}
            }
        }
        for topic in self.topics.iter().filter(|topic| !topics.contains(topic)) {
            waiting.topics.remove(&(*topic, self.number));
        }
        drop(waiting);
        self.topics = topics;
        news
    }

    /// Is woken at `at`, and not at what was asked for before.
    pub fn wake_at(&mut self, at: Instant) {
        let mut waiting = lock(&self.registry.waiting);
        if let Some(former) = self.due.replace(at) {
            waiting.timers.clear(former, self.number);
        }
        waiting.timers.set(at, self.number, &self.signal);
    }

    /// Is told to look again at business time `at`, when what it rests on expires.
    pub fn expire_at(&mut self, at: Option<Timestamp>) {
        let mut waiting = lock(&self.registry.waiting);
        if let Some(former) = self.expires {
            waiting.timers.forget_expiry(former, self.number);
        }
        self.expires = at;
        if let Some(at) = at {
            waiting.timers.expire(at, self.number, &self.signal);
        }
    }

    /// What arrived under `key` (an inbox or a tenant that it listens to) after `reached`; `first` is
    /// what [`woken`](Self::woken) told. `None`: the store has to be read.
    pub fn recent(&self, key: Uuid, reached: i64, first: Option<i64>) -> Option<Recent> {
        let ring = lock(&self.registry.ring);
        // It may have been told of more since: what the ring has by now may not be all of that.
        let first = first.into_iter().chain(self.signal.arrived()).min();
        ring.recent(key, reached, first)
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut waiting = lock(&self.registry.waiting);
        waiting.all.remove(&self.number);
        for topic in &self.topics {
            waiting.topics.remove(&(*topic, self.number));
        }
        if let Some(at) = self.due {
            waiting.timers.clear(at, self.number);
        }
        if let Some(at) = self.expires {
            waiting.timers.forget_expiry(at, self.number);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing in here calls out while it holds the lock: a panic elsewhere leaves it whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt as _;
    use tempmail_model::retention::RetentionClass;

    use super::*;

    fn id(n: u128) -> Uuid {
        Uuid::from_u128(n)
    }

    fn arrived(seq: i64, inbox: u128, tenant: Option<u128>) -> Arrived {
        let (owner, class) = (Uuid::nil(), RetentionClass::FREE);
        let arrival = Arrival { seq, id: id(0), class, tenant: tenant.map(id), owner, inbox: id(inbox) };
        Arrived { arrival, row: None }
    }

    fn waiter(registry: &Arc<Registry>, topics: &[Topic]) -> Waiter {
        let mut waiter = Registry::register(registry);
        waiter.listen(topics.to_vec());
        waiter
    }

    fn told(waiter: &Waiter) -> Option<Woken> {
        waiter.woken().now_or_never()
    }

    fn first(waiter: &Waiter) -> Option<i64> {
        told(waiter).and_then(|woken| woken.arrived)
    }

    #[test]
    fn only_those_who_listen_are_woken() {
        let registry = Arc::new(Registry::new());
        let inbox = waiter(&registry, &[Topic::Inbox(id(1))]);
        let both = waiter(&registry, &[Topic::Inbox(id(1)), Topic::Tenant(id(2))]);
        let other = waiter(&registry, &[Topic::Inbox(id(2)), Topic::Tenant(id(1)), Topic::Rights(id(1))]);
        assert!(registry.is_awaited(&arrived(0, 1, None).arrival));
        assert!(!registry.is_awaited(&arrived(0, 9, Some(9)).arrival));
        registry.arrived(vec![arrived(1, 9, None), arrived(2, 1, None), arrived(3, 1, Some(2))], 3);
        assert_eq!((first(&inbox), first(&both), first(&other)), (Some(2), Some(2), None));
        assert_eq!(inbox.recent(id(1), 0, Some(2)).unwrap().arrived.len(), 2);
        registry.changed(&[id(1)]);
        assert!(told(&inbox).is_none());
        assert!(told(&other).is_some_and(|woken| woken.recheck && woken.arrived.is_none()));
    }

    #[test]
    fn topics_are_exchanged_and_new_ones_are_told() {
        let registry = Arc::new(Registry::new());
        let mut waiter = waiter(&registry, &[Topic::Inbox(id(1))]);
        assert!(!waiter.listen(vec![Topic::Inbox(id(1))]));
        assert!(waiter.listen(vec![Topic::Inbox(id(2))]));
        registry.arrived(vec![arrived(1, 1, None)], 1);
        assert!(told(&waiter).is_none());
        registry.arrived(vec![arrived(2, 2, None)], 2);
        assert_eq!(first(&waiter), Some(2));
    }

    #[test]
    fn what_changed_just_before_is_told_to_whoever_listens_now() {
        let registry = Arc::new(Registry::new());
        registry.changed(&[id(1)]);
        let mut late = waiter(&registry, &[Topic::Rights(id(1)), Topic::Rights(id(2))]);
        assert!(told(&late).is_some_and(|woken| woken.recheck));
        assert!(!late.listen(vec![Topic::Rights(id(1)), Topic::Rights(id(3))]));
        assert!(told(&late).is_none(), "once");
        registry.all_changed();
        assert!(told(&waiter(&registry, &[Topic::Rights(id(4))])).is_some_and(|woken| woken.recheck));
    }

    #[test]
    fn after_a_new_beginning_everybody_reads_the_store() {
        let registry = Arc::new(Registry::new());
        let waiter = waiter(&registry, &[Topic::Inbox(id(1))]);
        registry.begin_after(50);
        assert_eq!(first(&waiter), Some(0));
        assert!(waiter.recent(id(1), 20, Some(0)).is_none());
        assert!(waiter.recent(id(1), 50, Some(0)).is_some());
    }

    #[test]
    fn who_looks_for_another_reason_misses_nothing_of_a_new_beginning() {
        let registry = Arc::new(Registry::new());
        let waiter = waiter(&registry, &[Topic::Inbox(id(1))]);
        registry.begin_after(50);
        assert!(waiter.recent(id(1), 20, None).is_none(), "it was told of it and did not look yet");
        assert_eq!(first(&waiter), Some(0));
    }

    #[test]
    fn a_waiter_is_woken_at_its_time_and_at_its_expiry() {
        let registry = Arc::new(Registry::new());
        let mut waiter = waiter(&registry, &[]);
        let (now, business) = (Instant::now(), Timestamp::UNIX_EPOCH);
        waiter.wake_at(now);
        waiter.wake_at(now + Duration::from_secs(25));
        waiter.expire_at(Some(business + Duration::from_secs(60)));
        registry.tick(now + Duration::from_secs(24), business);
        assert!(told(&waiter).is_none());
        registry.tick(now + Duration::from_secs(25), business + Duration::from_secs(60));
        assert!(told(&waiter).is_some_and(|woken| woken.due && woken.recheck));
    }

    #[test]
    fn a_drain_tells_everybody_in_turn_and_whoever_comes_later() {
        let registry = Arc::new(Registry::new());
        let waiters: Vec<Waiter> = (0..10).map(|_| waiter(&registry, &[])).collect();
        assert!(registry.begin_drain() >= 10);
        let last = registry.drain_after(0, 4).unwrap();
        assert_eq!(waiters.iter().filter(|waiter| told(waiter).is_some_and(|told| told.drain)).count(), 4);
        let last = registry.drain_after(last, 100).unwrap();
        assert!(waiters[9].woken().now_or_never().is_some());
        assert_eq!(registry.drain_after(last, 100), None);
        assert!(told(&waiter(&registry, &[])).is_some_and(|told| told.drain));
    }

    #[test]
    fn a_waiter_that_is_gone_leaves_nothing() {
        let registry = Arc::new(Registry::new());
        let mut gone = waiter(&registry, &[Topic::Inbox(id(1)), Topic::Rights(id(2))]);
        gone.wake_at(Instant::now());
        gone.expire_at(Some(Timestamp::UNIX_EPOCH));
        drop(gone);
        let waiting = lock(&registry.waiting);
        assert!(waiting.all.is_empty() && waiting.topics.is_empty());
        assert!(format!("{:?}", waiting.timers).contains("due: {}, expiring: {}"), "{:?}", waiting.timers);
    }
}
