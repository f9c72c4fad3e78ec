//! How far hints have told of the stream without a gap. The stream's numbers have none, so a
//! missing one is a hint that was lost, or of another process.

use std::collections::BTreeSet;

/// Hints ahead of a gap that are remembered; what is forgotten is only read again.
const AHEAD_MAX: usize = 65_536;

/// The positions that hints, or a repair, have told of.
#[derive(Debug)]
pub(super) struct Coverage {
    /// Everything up to here was told.
    upto: i64,
    /// Told, but not everything before it was.
    ahead: BTreeSet<i64>,
}

impl Coverage {
    /// Everything up to `position` was told.
    pub(super) fn new(position: i64) -> Self {
        Self { upto: position, ahead: BTreeSet::new() }
    }

    /// A hint told of `seq`; 0 is no position.
    pub(super) fn told(&mut self, seq: i64) {
        if seq == self.upto + 1 {
            self.upto = seq;
            while self.ahead.first() == Some(&(self.upto + 1)) {
                self.ahead.pop_first();
                self.upto += 1;
            }
        } else if seq > self.upto {
            if self.ahead.len() >= AHEAD_MAX {
                self.ahead.clear();
            }
            self.ahead.insert(seq);
        }
    }

    /// The last position before what is missing up to `position`; `None` where nothing is.
    pub(super) fn gap(&self, position: i64) -> Option<i64> {
        (self.upto < position).then_some(self.upto)
    }

    /// Whatever was missing up to `position` has been told.
    pub(super) fn repaired(&mut self, position: i64) {
        if position > self.upto {
            self.ahead = self.ahead.split_off(&(position + 1));
            self.upto = position;
            while self.ahead.first() == Some(&(self.upto + 1)) {
                self.ahead.pop_first();
                self.upto += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_in_any_order_leave_no_gap() {
        let mut coverage = Coverage::new(10);
        for seq in [13, 11, 0, 12, 5, 14] {
            coverage.told(seq);
        }
        assert_eq!(coverage.gap(14), None);
        assert_eq!(coverage.gap(15), Some(14));
        assert!(coverage.ahead.is_empty());
    }

    #[test]
    fn a_lost_hint_is_a_gap_until_it_is_repaired() {
        let mut coverage = Coverage::new(0);
        for seq in [1, 3, 4, 7] {
            coverage.told(seq);
        }
        assert_eq!(coverage.gap(4), Some(1));
        coverage.repaired(4);
        assert_eq!(coverage.gap(4), None);
        coverage.told(5);
        coverage.told(6);
        assert_eq!(coverage.gap(7), None);
        coverage.repaired(2);
        assert_eq!(coverage.gap(8), Some(7));
    }

    #[test]
    fn memory_is_bounded() {
        let mut coverage = Coverage::new(0);
        for seq in 2..200_000 {
            coverage.told(seq);
        }
        assert!(coverage.ahead.len() <= AHEAD_MAX);
        assert_eq!(coverage.gap(200_000), Some(0));
    }
}
