//! The newest arrivals of the stream, found by their inbox and by their tenant. Whoever keeps up
//! reads new mail from here, and Postgres is asked once for all of them.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tempmail_model::message::Arrival;
use tempmail_store::MessageRow;
use uuid::Uuid;

/// Arrivals that are kept.
const KEPT: usize = 8_192;

/// A message that arrived.
#[derive(Debug)]
pub struct Arrived {
    /// What the stream tells of it.
    pub arrival: Arrival,
    /// Its row; `None` where nobody listened to it when it came, or it was deleted at once.
    pub row: Option<MessageRow>,
}

/// What came for one who keeps up.
#[derive(Debug)]
pub struct Recent {
    /// In the order of the stream.
    pub arrived: Vec<Arc<Arrived>>,
    /// Everything up to here was looked at.
    pub up_to: i64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Ring {
    /// Everything after this, and up to `up_to`, is here.
    after: i64,
    up_to: i64,
    arrived: VecDeque<Arc<Arrived>>,
    by_key: HashMap<Uuid, VecDeque<Arc<Arrived>>>,
}

impl Ring {
    /// An empty ring that begins after `position`.
    pub(super) fn new(position: i64) -> Self {
        Self { after: position, up_to: position, arrived: VecDeque::new(), by_key: HashMap::new() }
    }

    /// Adds what comes next in the stream, up to `up_to`.
    pub(super) fn push(&mut self, run: impl IntoIterator<Item = Arrived>, up_to: i64) {
        for arrived in run {
            if self.arrived.len() >= KEPT {
                self.forget_oldest();
            }
            let arrived = Arc::new(arrived);
            for key in keys(&arrived.arrival) {
                self.by_key.entry(key).or_default().push_back(Arc::clone(&arrived));
            }
            self.arrived.push_back(arrived);
        }
        self.up_to = self.up_to.max(up_to);
    }

    /// What came under `key` after `reached`, for a reader that was told of each arrival:
    /// `first` is the earliest one that it was told of since it last looked. `None` where some of
    /// it is not here any more.
    pub(super) fn recent(&self, key: Uuid, reached: i64, first: Option<i64>) -> Option<Recent> {
        // Before the first one that it was told of there is nothing for it, kept or not.
        if first.is_some_and(|first| reached.max(first - 1) < self.after) {
            return None;
        }
        let of_key = self.by_key.get(&key).into_iter().flatten();
        let arrived = of_key.filter(|arrived| arrived.arrival.seq > reached).cloned().collect();
        Some(Recent { arrived, up_to: self.up_to })
    }

    fn forget_oldest(&mut self) {
        let Some(oldest) = self.arrived.pop_front() else { return };
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

/// What an arrival is found by.
fn keys(arrival: &Arrival) -> impl Iterator<Item = Uuid> {
    [Some(arrival.inbox), arrival.tenant].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use tempmail_model::retention::RetentionClass;

    use super::*;

    fn arrived(seq: i64, inbox: u128, tenant: Option<u128>) -> Arrived {
        let arrival = Arrival {
            seq,
            id: Uuid::nil(),
            class: RetentionClass::FREE,
            tenant: tenant.map(Uuid::from_u128),
            owner: Uuid::nil(),
            inbox: Uuid::from_u128(inbox),
        };
        Arrived { arrival, row: None }
    }

    fn recent(ring: &Ring, key: u128, reached: i64, first: Option<i64>) -> Option<(Vec<i64>, i64)> {
        let recent = ring.recent(Uuid::from_u128(key), reached, first)?;
        Some((recent.arrived.iter().map(|arrived| arrived.arrival.seq).collect(), recent.up_to))
    }

    #[test]
    fn arrivals_are_found_by_inbox_and_by_tenant() {
        let mut ring = Ring::new(10);
        ring.push([arrived(11, 1, Some(7)), arrived(12, 2, Some(7)), arrived(13, 1, None)], 14);
        assert_eq!(recent(&ring, 1, 10, Some(11)), Some((vec![11, 13], 14)));
        assert_eq!(recent(&ring, 1, 11, Some(13)), Some((vec![13], 14)));
        assert_eq!(recent(&ring, 7, 10, Some(11)), Some((vec![11, 12], 14)));
        assert_eq!(recent(&ring, 3, 10, None), Some((vec![], 14)));
    }

    #[test]
    fn who_fell_behind_is_told_and_who_only_waited_is_not() {
        let mut ring = Ring::new(0);
        let kept = i64::try_from(KEPT).unwrap();
        ring.push((1..=kept + 100).map(|seq| arrived(seq, 1, None)), kept + 100);
        ring.push([arrived(kept + 101, 2, None)], kept + 101);
        assert_eq!(recent(&ring, 1, 0, Some(1)), None);
        assert_eq!(recent(&ring, 1, 100, Some(1)), None, "101 is gone too");
        assert_eq!(recent(&ring, 2, 0, Some(kept + 101)), Some((vec![kept + 101], kept + 101)));
        assert_eq!(recent(&ring, 3, 0, None), Some((vec![], kept + 101)));
        assert_eq!((ring.arrived.len(), ring.by_key.len()), (KEPT, 2));
    }
}
