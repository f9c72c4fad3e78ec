//! The newest messages of the stream, by inbox and by tenant. Subscribers that keep up read new mail from
//! here, and Postgres is queried once for all of them.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tempmail_model::message::Arrival;
use tempmail_store::MessageRow;
use uuid::Uuid;

/// Messages in the ring.
const CAPACITY: usize = 8_192;

/// A message that arrived.
#[derive(Debug)]
pub(crate) struct ArrivedMessage {
    /// Its entry in the stream.
    pub(crate) arrival: Arrival,
    /// Its row; `None` where it had no subscriber when it arrived, or was deleted at once.
    pub(crate) row: Option<MessageRow>,
}

/// What arrived for a subscriber that keeps up.
#[derive(Debug)]
pub(crate) struct RecentArrivals {
    /// In the order of the stream.
    pub(crate) messages: Vec<Arc<ArrivedMessage>>,
    /// Every message up to this position was considered.
    pub(crate) up_to: i64,
}

/// The newest messages of the stream.
#[derive(Debug)]
pub(super) struct Ring {
    /// The ring has every message after this position, up to `up_to`.
    after: i64,
    up_to: i64,
    messages: VecDeque<Arc<ArrivedMessage>>,
    by_key: HashMap<Uuid, VecDeque<Arc<ArrivedMessage>>>,
}

impl Ring {
    /// An empty ring that starts after `position`.
    pub(super) fn new(position: i64) -> Self {
        Self { after: position, up_to: position, messages: VecDeque::new(), by_key: HashMap::new() }
    }

    /// Adds the next messages of the stream, up to position `up_to`.
    pub(super) fn push(&mut self, messages: impl IntoIterator<Item = ArrivedMessage>, up_to: i64) {
        for message in messages {
            if self.messages.len() >= CAPACITY {
                self.remove_oldest();
            }
            let message = Arc::new(message);
            for key in keys(&message.arrival) {
                self.by_key.entry(key).or_default().push_back(Arc::clone(&message));
            }
            self.messages.push_back(message);
        }
        self.up_to = self.up_to.max(up_to);
    }

    /// What arrived under `key` after `reached`, for a subscriber that was notified of each arrival:
    /// `first` is the earliest one since it last read. `None` where the ring no longer has all of them.
    pub(super) fn recent(&self, key: Uuid, reached: i64, first: Option<i64>) -> Option<RecentArrivals> {
        // Nothing arrived for the subscriber before the first arrival that it was notified of.
        if first.is_some_and(|first| reached.max(first - 1) < self.after) {
            return None;
        }
        let of_key = self.by_key.get(&key).into_iter().flatten();
        let messages = of_key.filter(|message| message.arrival.seq > reached).cloned().collect();
        Some(RecentArrivals { messages, up_to: self.up_to })
    }

    fn remove_oldest(&mut self) {
        let Some(oldest) = self.messages.pop_front() else { return };
        self.after = oldest.arrival.seq;
        for key in keys(&oldest.arrival) {
            if let Entry::Occupied(mut of_key) = self.by_key.entry(key) {
                of_key.get_mut().pop_front();
                if of_key.get().is_empty() {
                    of_key.remove();
                }
            }
        }
    }
}

/// The keys that an arrival is found by.
fn keys(arrival: &Arrival) -> impl Iterator<Item = Uuid> {
    [Some(arrival.inbox), arrival.tenant].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use tempmail_model::retention::RetentionClass;

    use super::*;

    fn message(seq: i64, inbox: u128, tenant: Option<u128>) -> ArrivedMessage {
        let arrival = Arrival {
            seq,
            id: Uuid::nil(),
            class: RetentionClass::FREE,
            tenant: tenant.map(Uuid::from_u128),
            owner: Uuid::nil(),
            inbox: Uuid::from_u128(inbox),
        };
        ArrivedMessage { arrival, row: None }
    }

    fn recent(ring: &Ring, key: u128, reached: i64, first: Option<i64>) -> Option<(Vec<i64>, i64)> {
        let recent = ring.recent(Uuid::from_u128(key), reached, first)?;
        Some((recent.messages.iter().map(|message| message.arrival.seq).collect(), recent.up_to))
    }

    #[test]
    fn finds_messages_by_inbox_and_by_tenant() {
        let mut ring = Ring::new(10);
        ring.push([message(11, 1, Some(7)), message(12, 2, Some(7)), message(13, 1, None)], 14);
        assert_eq!(recent(&ring, 1, 10, Some(11)), Some((vec![11, 13], 14)));
        assert_eq!(recent(&ring, 1, 11, Some(13)), Some((vec![13], 14)));
        assert_eq!(recent(&ring, 7, 10, Some(11)), Some((vec![11, 12], 14)));
        assert_eq!(recent(&ring, 3, 10, None), Some((vec![], 14)));
    }

    #[test]
    fn has_only_subscribers_that_fell_behind_read_the_store() {
        let mut ring = Ring::new(0);
        let capacity = i64::try_from(CAPACITY).unwrap();
        ring.push((1..=capacity + 100).map(|seq| message(seq, 1, None)), capacity + 100);
        ring.push([message(capacity + 101, 2, None)], capacity + 101);
        assert_eq!(recent(&ring, 1, 0, Some(1)), None);
        assert_eq!(recent(&ring, 1, 100, Some(1)), None, "101 was removed too");
        assert_eq!(recent(&ring, 2, 0, Some(capacity + 101)), Some((vec![capacity + 101], capacity + 101)));
        assert_eq!(recent(&ring, 3, 0, None), Some((vec![], capacity + 101)));
        assert_eq!((ring.messages.len(), ring.by_key.len()), (CAPACITY, 2));
    }
}
