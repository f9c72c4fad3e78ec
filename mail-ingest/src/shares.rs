//! Who has how much of a total. Where a total is reached, the one with the most of it has to give way to one that
//! has little, so that nobody can shut out the others by taking all.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

/// Amounts by holder, with their sum.
#[derive(Debug)]
pub(crate) struct Shares<K> {
    total: usize,
    by_holder: HashMap<K, usize>,
    /// The same amounts, largest last.
    order: BTreeSet<(usize, K)>,
}

impl<K: Copy + Ord + Hash> Shares<K> {
    /// The sum of all amounts.
    pub(crate) fn total(&self) -> usize {
        self.total
    }

    /// Adds to the amount of a holder; `None`: one that counts in the sum only and never gives way.
    pub(crate) fn add(&mut self, holder: Option<K>, amount: usize) {
        self.total += amount;
        if let Some(holder) = holder {
            let before = self.amount(holder);
            self.set(holder, before, before + amount);
        }
    }

    /// Subtracts from the amount of a holder.
    pub(crate) fn subtract(&mut self, holder: Option<K>, amount: usize) {
        self.total = self.total.saturating_sub(amount);
        if let Some(holder) = holder {
            let before = self.amount(holder);
            self.set(holder, before, before.saturating_sub(amount));
        }
    }

    /// The holder that gives way to `holder`, which wants `amount` more of `limit`: the one with the most, if
    /// `holder` stays within an equal share of the limit, or has less than half of that. `None` if `holder` has to
    /// wait itself.
    pub(crate) fn displaced_by(&self, holder: Option<K>, amount: usize, limit: usize) -> Option<K> {
        let (most, largest) = *self.order.last()?;
        if holder == Some(largest) {
            return None;
        }
        let before = holder.map_or(0, |holder| self.amount(holder));
        let after = before + amount;
        let holders = self.by_holder.len() + usize::from(before == 0);
        (after <= limit / holders || after <= most / 2).then_some(largest)
    }

    fn amount(&self, holder: K) -> usize {
        self.by_holder.get(&holder).copied().unwrap_or(0)
    }

    fn set(&mut self, holder: K, before: usize, after: usize) {
        self.order.remove(&(before, holder));
        if after == 0 {
            self.by_holder.remove(&holder);
        } else {
            self.by_holder.insert(holder, after);
            self.order.insert((after, holder));
        }
    }
}

impl<K> Default for Shares<K> {
    fn default() -> Self {
        Self { total: 0, by_holder: HashMap::new(), order: BTreeSet::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_holder_gives_way_to_one_within_an_equal_share() {
        let mut shares = Shares::default();
        shares.add(Some('a'), 60);
        shares.add(Some('b'), 40);
        assert_eq!(shares.total(), 100);
        assert_eq!(shares.displaced_by(Some('c'), 33, 100), Some('a'));
        assert_eq!(shares.displaced_by(Some('c'), 34, 100), None);
        assert_eq!(shares.displaced_by(Some('b'), 10, 100), Some('a'), "up to half of the limit");
        assert_eq!(shares.displaced_by(Some('b'), 11, 100), None);
        assert_eq!(shares.displaced_by(Some('a'), 1, 100), None, "it has the most itself");
        assert_eq!(shares.displaced_by(None, 30, 100), Some('a'));
    }

    #[test]
    fn many_small_holders_do_not_make_an_equal_share_too_small() {
        let mut shares = Shares::default();
        shares.add(Some(0), 80);
        for holder in 1..=20 {
            shares.add(Some(holder), 1);
        }
        assert_eq!(shares.displaced_by(Some(21), 40, 100), Some(0));
        assert_eq!(shares.displaced_by(Some(21), 41, 100), None);
    }

    #[test]
    fn forgets_holders_that_have_nothing() {
        let mut shares = Shares::default();
        shares.add(Some('a'), 5);
        shares.add(None, 5);
        shares.subtract(Some('a'), 5);
        assert_eq!((shares.total(), shares.displaced_by(Some('b'), 1, 5)), (5, None));
        shares.subtract(None, 5);
        assert!(shares.total() == 0 && shares.by_holder.is_empty() && shares.order.is_empty());
    }
}
