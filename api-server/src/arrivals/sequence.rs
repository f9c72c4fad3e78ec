//! Puts arrivals into the order of the stream. Its numbers have no gaps, so a missing one is a hint
//! that was lost, or is still on its way from another process.

use std::collections::BTreeMap;

use tempmail_model::message::Arrival;

/// Arrivals behind a gap that are kept; what is forgotten is only read again.
const AHEAD_MAX: usize = 65_536;

/// Arrivals on their way into the order of the stream.
#[derive(Debug)]
pub(super) struct Sequence {
    /// Everything up to here was taken.
    taken: i64,
    /// Told, and not taken yet.
    ahead: BTreeMap<i64, Arrival>,
}

impl Sequence {
    /// Begins after `position`.
    pub(super) fn new(position: i64) -> Self {
        Self { taken: position, ahead: BTreeMap::new() }
    }

    /// Everything up to here was taken.
    pub(super) fn taken(&self) -> i64 {
        self.taken
    }

    /// An arrival is known; one that was taken already is nothing new.
    pub(super) fn told(&mut self, arrival: Arrival) {
        if arrival.seq <= self.taken {
            return;
        }
        if self.ahead.len() >= AHEAD_MAX {
            self.ahead.clear();
        }
        self.ahead.insert(arrival.seq, arrival);
    }

    /// Takes what follows without a gap.
    pub(super) fn take(&mut self) -> Vec<Arrival> {
        let mut run = Vec::new();
        while let Some(entry) = self.ahead.first_entry()
            && *entry.key() == self.taken + 1
        {
            self.taken += 1;
            run.push(entry.remove());
        }
        run
    }

    /// Takes everything up to `position`: what is not known by now is gone from the store too.
    pub(super) fn take_up_to(&mut self, position: i64) -> Vec<Arrival> {
        let later = self.ahead.split_off(&(position + 1));
        let run = std::mem::replace(&mut self.ahead, later).into_values().collect();
        self.taken = self.taken.max(position);
        run
    }

    /// Whether something waits behind a gap.
    pub(super) fn has_gap(&self) -> bool {
        !self.ahead.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use tempmail_model::retention::RetentionClass;
    use uuid::Uuid;

    use super::*;

    fn arrival(seq: i64) -> Arrival {
        let (id, owner, inbox) = (Uuid::nil(), Uuid::nil(), Uuid::nil());
        Arrival { seq, id, class: RetentionClass::FREE, tenant: None, owner, inbox }
    }

    fn seqs(run: &[Arrival]) -> Vec<i64> {
        run.iter().map(|arrival| arrival.seq).collect()
    }

    #[test]
    fn arrivals_in_any_order_are_taken_in_the_order_of_the_stream() {
        let mut sequence = Sequence::new(10);
        for seq in [13, 12, 5, 13] {
            sequence.told(arrival(seq));
        }
        assert_eq!((seqs(&sequence.take()), sequence.has_gap()), (vec![], true));
        sequence.told(arrival(11));
        assert_eq!((seqs(&sequence.take()), sequence.has_gap()), (vec![11, 12, 13], false));
        assert_eq!(sequence.taken(), 13);
    }

    #[test]
    fn a_gap_is_closed_by_what_the_store_has() {
        let mut sequence = Sequence::new(0);
        for seq in [2, 5, 9] {
            sequence.told(arrival(seq));
        }
        sequence.told(arrival(3));
        assert_eq!(seqs(&sequence.take_up_to(5)), [2, 3, 5]);
        assert_eq!((sequence.taken(), sequence.has_gap()), (5, true));
        assert_eq!(seqs(&sequence.take_up_to(4)), [] as [i64; 0]);
        assert_eq!(sequence.taken(), 5);
    }

    #[test]
    fn memory_is_bounded() {
        let mut sequence = Sequence::new(0);
        for seq in 2..200_000 {
            sequence.told(arrival(seq));
        }
        assert!(sequence.ahead.len() <= AHEAD_MAX);
    }
}
