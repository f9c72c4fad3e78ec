//! One subscriber.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::time::Instant;
use uuid::Uuid;

use super::registry::{Registry, Topic};
use super::ring::RecentArrivals;
use super::signal::{Notification, Notifications, Signal};

/// A subscriber of the process' registry; removed when dropped.
#[derive(Debug)]
pub(crate) struct Subscriber {
    number: u64,
    signal: Arc<Signal>,
    topics: Vec<Topic>,
    due: Option<Instant>,
    expires: Option<Timestamp>,
    registry: Arc<Registry>,
}

impl Subscriber {
    pub(super) fn register(registry: &Arc<Registry>) -> Self {
        let (number, signal) = registry.add();
        Self { number, signal, topics: Vec::new(), due: None, expires: None, registry: Arc::clone(registry) }
    }

    /// Waits for notifications; those since the last call are kept.
    pub(crate) async fn notified(&self) -> Notifications {
        self.signal.notified().await
    }

    /// Replaces the topics. `true` where mail of some of them was not subscribed to before: what arrived
    /// of it until now must be read from the store. Recent changes of rights among the new topics are
    /// notified at once.
    pub(crate) fn subscribe(&mut self, topics: Vec<Topic>) -> bool {
        let mut entries = self.registry.entries();
        let mut has_new_mail_topic = false;
        for topic in &topics {
            if !entries.subscribe(*topic, self.number, &self.signal) {
                continue;
            }
            match topic {
                Topic::Inbox(_) | Topic::Tenant(_) => has_new_mail_topic = true,
                Topic::Rights(subject) if entries.changed_recently(*subject) => {
                    self.signal.notify(Notification::Recheck);
                }
                Topic::Rights(_) => {}
            }
        }
        for topic in self.topics.iter().filter(|topic| !topics.contains(topic)) {
            entries.unsubscribe(*topic, self.number);
        }
        drop(entries);
        self.topics = topics;
        has_new_mail_topic
    }

    /// Schedules a notification at `at`, in place of the one that was scheduled before.
    pub(crate) fn schedule(&mut self, at: Instant) {
        let mut entries = self.registry.entries();
        if let Some(former) = self.due.replace(at) {
            entries.timers.cancel(former, self.number);
        }
        entries.timers.schedule(at, self.number, &self.signal);
    }

    /// Schedules a check of rights at business time `at`, when they expire.
    pub(crate) fn schedule_expiry(&mut self, at: Option<Timestamp>) {
        let mut entries = self.registry.entries();
        if let Some(former) = self.expires {
            entries.timers.cancel_expiry(former, self.number);
        }
        self.expires = at;
        if let Some(at) = at {
            entries.timers.schedule_expiry(at, self.number, &self.signal);
        }
    }

    /// What arrived under `key` (an inbox or a tenant that is subscribed to) after `reached`; `first` is
    /// the first arrival that [`notified`](Self::notified) returned. `None`: read the store.
    pub(crate) fn recent(&self, key: Uuid, reached: i64, first: Option<i64>) -> Option<RecentArrivals> {
        self.registry.recent(&self.signal, key, reached, first)
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        let mut entries = self.registry.entries();
        entries.remove(self.number);
        for topic in &self.topics {
            entries.unsubscribe(*topic, self.number);
        }
        if let Some(at) = self.due {
            entries.timers.cancel(at, self.number);
        }
        if let Some(at) = self.expires {
            entries.timers.cancel_expiry(at, self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt as _;
    use tempmail_model::message::Arrival;
    use tempmail_model::retention::RetentionClass;

    use super::super::ring::ArrivedMessage;
    use super::*;

    fn id(n: u128) -> Uuid {
        Uuid::from_u128(n)
    }

    fn message(seq: i64, inbox: u128, tenant: Option<u128>) -> ArrivedMessage {
        let (owner, class) = (Uuid::nil(), RetentionClass::FREE);
        let arrival = Arrival { seq, id: id(0), class, tenant: tenant.map(id), owner, inbox: id(inbox) };
        ArrivedMessage { arrival, row: None }
    }

    fn subscriber(registry: &Arc<Registry>, topics: &[Topic]) -> Subscriber {
        let mut subscriber = Subscriber::register(registry);
        subscriber.subscribe(topics.to_vec());
        subscriber
    }

    fn pending(subscriber: &Subscriber) -> Option<Notifications> {
        subscriber.notified().now_or_never()
    }

    fn first_arrival(subscriber: &Subscriber) -> Option<i64> {
        pending(subscriber).and_then(|notifications| notifications.arrived)
    }

    #[test]
    fn notifies_the_subscribers_of_a_topic_only() {
        let registry = Arc::new(Registry::new());
        let inbox = subscriber(&registry, &[Topic::Inbox(id(1))]);
        let both = subscriber(&registry, &[Topic::Inbox(id(1)), Topic::Tenant(id(2))]);
        let topics = [Topic::Inbox(id(2)), Topic::Tenant(id(1)), Topic::Rights(id(1))];
        let other = subscriber(&registry, &topics);
        assert!(registry.has_subscriber(&message(0, 1, None).arrival));
        assert!(!registry.has_subscriber(&message(0, 9, Some(9)).arrival));
        registry.publish(vec![message(1, 9, None), message(2, 1, None), message(3, 1, Some(2))], 3);
        let first = (first_arrival(&inbox), first_arrival(&both), first_arrival(&other));
        assert_eq!(first, (Some(2), Some(2), None));
        assert_eq!(inbox.recent(id(1), 0, Some(2)).unwrap().messages.len(), 2);
        registry.rights_changed(&[id(1)]);
        assert!(pending(&inbox).is_none());
        assert!(pending(&other).is_some_and(|pending| pending.recheck && pending.arrived.is_none()));
    }

    #[test]
    fn replaces_topics_and_reports_new_mail_topics() {
        let registry = Arc::new(Registry::new());
        let mut subscriber = subscriber(&registry, &[Topic::Inbox(id(1))]);
        assert!(!subscriber.subscribe(vec![Topic::Inbox(id(1))]));
        assert!(subscriber.subscribe(vec![Topic::Inbox(id(2))]));
        registry.publish(vec![message(1, 1, None)], 1);
        assert!(pending(&subscriber).is_none());
        registry.publish(vec![message(2, 2, None)], 2);
        assert_eq!(first_arrival(&subscriber), Some(2));
    }

    #[test]
    fn notifies_a_new_subscriber_of_recent_changes_of_rights() {
        let registry = Arc::new(Registry::new());
        registry.rights_changed(&[id(1)]);
        let mut late = subscriber(&registry, &[Topic::Rights(id(1)), Topic::Rights(id(2))]);
        assert!(pending(&late).is_some_and(|pending| pending.recheck));
        assert!(!late.subscribe(vec![Topic::Rights(id(1)), Topic::Rights(id(3))]));
        assert!(pending(&late).is_none(), "a change is notified once");
        registry.all_rights_changed();
        let latest = subscriber(&registry, &[Topic::Rights(id(4))]);
        assert!(pending(&latest).is_some_and(|pending| pending.recheck));
    }

    #[test]
    fn has_every_subscriber_read_the_store_after_a_restart() {
        let registry = Arc::new(Registry::new());
        let subscriber = subscriber(&registry, &[Topic::Inbox(id(1))]);
        registry.restart_after(50);
        assert_eq!(first_arrival(&subscriber), Some(0));
        assert!(subscriber.recent(id(1), 20, Some(0)).is_none());
        assert!(subscriber.recent(id(1), 50, Some(0)).is_some());
    }

    #[test]
    fn reads_the_store_while_a_restart_is_not_yet_notified() {
        let registry = Arc::new(Registry::new());
        let subscriber = subscriber(&registry, &[Topic::Inbox(id(1))]);
        registry.restart_after(50);
        assert!(subscriber.recent(id(1), 20, None).is_none(), "the notification is pending");
        assert_eq!(first_arrival(&subscriber), Some(0));
    }

    #[test]
    fn notifies_at_the_scheduled_time_and_at_expiry() {
        let registry = Arc::new(Registry::new());
        let mut subscriber = subscriber(&registry, &[]);
        let (now, business) = (Instant::now(), Timestamp::UNIX_EPOCH);
        subscriber.schedule(now);
        subscriber.schedule(now + Duration::from_secs(25));
        subscriber.schedule_expiry(Some(business + Duration::from_secs(60)));
        registry.fire_due(now + Duration::from_secs(24), business);
        assert!(pending(&subscriber).is_none());
        registry.fire_due(now + Duration::from_secs(25), business + Duration::from_secs(60));
        assert!(pending(&subscriber).is_some_and(|pending| pending.due && pending.recheck));
    }

    #[test]
    fn drains_subscribers_in_batches_and_new_ones_at_once() {
        let registry = Arc::new(Registry::new());
        let subscribers: Vec<Subscriber> = (0..10).map(|_| subscriber(&registry, &[])).collect();
        let is_drained = |subscriber: &Subscriber| pending(subscriber).is_some_and(|pending| pending.drain);
        assert!(registry.begin_drain() >= 10);
        let last = registry.drain_next(0, 4).unwrap();
        assert_eq!(subscribers.iter().filter(|subscriber| is_drained(subscriber)).count(), 4);
        let last = registry.drain_next(last, 100).unwrap();
        assert!(pending(&subscribers[9]).is_some());
        assert_eq!(registry.drain_next(last, 100), None);
        assert!(is_drained(&subscriber(&registry, &[])));
    }

    #[test]
    fn removes_every_entry_of_a_dropped_subscriber() {
        let registry = Arc::new(Registry::new());
        let mut dropped = subscriber(&registry, &[Topic::Inbox(id(1)), Topic::Rights(id(2))]);
        dropped.schedule(Instant::now());
        dropped.schedule_expiry(Some(Timestamp::UNIX_EPOCH));
        drop(dropped);
        assert!(registry.entries().is_empty());
    }
}
