//! Puts arrivals into the order of the stream. Its numbers have no gaps: a missing number is a hint that
//! was lost, or has not arrived from another process yet.

use std::collections::BTreeMap;

use tempmail_model::message::Arrival;

/// Arrivals behind a gap that are kept; dropped ones are read from the store.
const PENDING_MAX: usize = 65_536;

/// Arrivals that are being put into the order of the stream.
#[derive(Debug)]
pub(super) struct Sequence {
    /// Everything up to this position was taken.
    taken: i64,
    /// Recorded and not taken yet.
    pending: BTreeMap<i64, Arrival>,
}

impl Sequence {
    /// Starts after `position`.
    pub(super) fn new(position: i64) -> Self {
        Self { taken: position, pending: BTreeMap::new() }
    }

    /// The position up to which everything was taken.
    pub(super) fn taken(&self) -> i64 {
        self.taken
    }

    /// Records an arrival, unless it was taken already.
    pub(super) fn record(&mut self, arrival: Arrival) {
        if arrival.seq <= self.taken {
            return;
        }
        if self.pending.len() >= PENDING_MAX {
            self.pending.clear();
        }
        self.pending.insert(arrival.seq, arrival);
    }

    /// Takes the arrivals that follow without a gap.
    pub(super) fn take_contiguous(&mut self) -> Vec<Arrival> {
        let mut run = Vec::new();
        while let Some(entry) = self.pending.first_entry()
            && *entry.key() == self.taken + 1
        {
            self.taken += 1;
            run.push(entry.remove());
        }
        run
    }

    /// Takes everything up to `position`: arrivals that are still missing were deleted from the store.
    pub(super) fn take_up_to(&mut self, position: i64) -> Vec<Arrival> {
        let later = self.pending.split_off(&(position + 1));
        let run = std::mem::replace(&mut self.pending, later).into_values().collect();
        self.taken = self.taken.max(position);
        run
    }

    /// Whether no arrival is missing up to `position`.
    pub(super) fn is_complete_up_to(&self, position: i64) -> bool {
        let recorded = i64::try_from(self.pending.range(..=position).count()).unwrap_or(i64::MAX);
        self.taken + recorded >= position
    }

    /// Whether arrivals are pending behind a gap.
    pub(super) fn has_gap(&self) -> bool {
        !self.pending.is_empty()
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
    fn takes_arrivals_in_the_order_of_the_stream() {
        let mut sequence = Sequence::new(10);
        for seq in [13, 12, 5, 13] {
            sequence.record(arrival(seq));
        }
        assert_eq!((seqs(&sequence.take_contiguous()), sequence.has_gap()), (vec![], true));
        sequence.record(arrival(11));
        assert_eq!((seqs(&sequence.take_contiguous()), sequence.has_gap()), (vec![11, 12, 13], false));
        assert_eq!(sequence.taken(), 13);
    }

    #[test]
    fn closes_a_gap_with_what_the_store_has() {
        let mut sequence = Sequence::new(0);
        for seq in [2, 5, 9] {
            sequence.record(arrival(seq));
        }
        sequence.record(arrival(3));
        assert!(!sequence.is_complete_up_to(5) && sequence.is_complete_up_to(0));
        assert_eq!(seqs(&sequence.take_up_to(5)), [2, 3, 5]);
        assert_eq!((sequence.taken(), sequence.has_gap()), (5, true));
        assert_eq!(seqs(&sequence.take_up_to(4)), [] as [i64; 0]);
        assert_eq!(sequence.taken(), 5);
    }

    #[test]
    fn bounds_the_pending_arrivals() {
        let mut sequence = Sequence::new(0);
        for seq in 2..200_000 {
            sequence.record(arrival(seq));
        }
        assert!(sequence.pending.len() <= PENDING_MAX);
    }
}
